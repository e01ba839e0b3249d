"""A session in simulated time, against simulated devices."""
