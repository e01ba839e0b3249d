"""The screens, and the questions that open over them."""
