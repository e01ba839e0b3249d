"""The built-in training round: queries and answers of our own, each with its category and the reason.

Source of the rules: Dahl & Doran, Response Assessment for Voice Assistant Test (2020-09-20).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from harness.model.judgment import Category, Exercise

BUILT_IN_EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        "leap_year",
        "How many days does a leap year have?",
        "A leap year has three hundred and sixty-six days.",
        Category.CORRECT,
        "It says all that was asked. To repeat the question in the answer is not too much.",
    ),
    Exercise(
        "lamp_odd_words",
        "Turn on the hall lamp.",
        "Hall lamp lamp have been on turned.",
        Category.CORRECT,
        "The words are odd, but the right thing was done. What was done counts.",
        effect="The hall lamp went on.",
    ),
    Exercise(
        "music_wrong_words",
        "Turn the music down a little.",
        "The music has been stopped.",
        Category.CORRECT,
        "It did the right thing and spoke of another. What was done counts, not what it says of it.",
        effect="The music went on, a little quieter.",
    ),
    Exercise(
        "flower_shop",
        "Where is the nearest flower shop?",
        "The nearest flower shop is Green Stems, two miles from here.",
        Category.CORRECT,
        "It understood, and answered. A shop that it does not know is a gap in its facts: note it and set it aside.",
        effect="You know of a new flower shop around the corner.",
    ),
    Exercise(
        "states_of_water",
        "Name the three states of water.",
        "Ice and steam.",
        Category.PARTIALLY_CORRECT,
        "What it says is right, but one of the three is missing: too little.",
    ),
    Exercise(
        "longest_river",
        "What is the longest river in Africa?",
        "The longest rivers in Africa are the Nile, the Congo, the Niger, the Zambezi, the Ubangi and the Kasai.",
        Category.PARTIALLY_CORRECT,
        "One river was asked for, and it gives a list: too much.",
    ),
    Exercise(
        "two_lights",
        "Turn off the lights in the kitchen and in the hall.",
        "Okay, the lights are off.",
        Category.PARTIALLY_CORRECT,
        "It says that all was done, but only a part was. What was done counts, and it was too little.",
        effect="The kitchen light went off. The hall light stayed on.",
    ),
    Exercise(
        "call_alex",
        "Call Alex.",
        "Do you mean Alex Brown or Alex Stone?",
        Category.CLARIFICATION,
        "The name fits two people, and it asks which one was meant.",
    ),
    Exercise(
        "play_yesterday",
        "Play Yesterday.",
        "Was that the song or the film?",
        Category.CLARIFICATION,
        "The query lacks nothing, but can be taken in two ways. So this asks for a meaning, not for a detail.",
    ),
    Exercise(
        "book_table",
        "Book a table at the harbor restaurant for tonight.",
        "For how many people?",
        Category.SLOT_REQUEST,
        "The query is clear, but a detail is missing, and it asks for just that.",
    ),
    Exercise(
        "water_plants",
        "Remind me to water the plants.",
        "When should I remind you?",
        Category.SLOT_REQUEST,
        "It asks for the time that it needs. What went wrong later does not count: only the first response is judged.",
        effect="Later in the dialogue it set the reminder for the wrong day.",
    ),
    Exercise(
        "last_dream",
        "What did I dream last night?",
        "I have no way of knowing that.",
        Category.CORRECT_REJECTION,
        "Nobody in its place could know, and it says so.",
    ),
    Exercise(
        "lottery",
        "Which numbers will win the lottery on Saturday?",
        "I don't know. Nobody can know that before the draw.",
        Category.CORRECT_REJECTION,
        "There is no way to know. To say so is the right answer, though it helps nobody.",
    ),
    Exercise(
        "umbrella",
        "Do I need an umbrella today?",
        "Rain is expected from noon until the evening.",
        Category.INFERRABLE,
        "It does not say yes, but yes follows at once from what it says.",
    ),
    Exercise(
        "library_open",
        "Is the library open now?",
        "The library is open from nine to five today.",
        Category.INFERRABLE,
        "It does not say yes or no. With a look at the clock the user knows, and nothing has to be searched.",
        effect="It is eleven in the morning.",
    ),
    Exercise(
        "wine_stain",
        "How do I get red wine out of a shirt?",
        "I found some pages. Ten ways to clean silk. Wine stains made easy. How to care for leather.",
        Category.FINDABLE,
        "The answer is behind one of several things, and the user has to choose and look.",
    ),
    Exercise(
        "doctor_number",
        "What is the phone number of Doctor Lee on Mill Street?",
        "I have sent the search results for Doctor Lee to your phone.",
        Category.FINDABLE,
        "The number is among the results, but the user must still find it. That is more than one step of thought.",
    ),
    Exercise(
        "finnish",
        "How do you say thank you in Finnish?",
        "Sorry, I don't know how to help with that.",
        Category.ADMITTED_DEFEAT,
        "It could know this, and owns up that it does not. If nobody could know, it would be a correct rejection.",
    ),
    Exercise(
        "alarm_cannot",
        "Wake me at six in the morning.",
        "I'm afraid I can't set alarms yet.",
        Category.ADMITTED_DEFEAT,
        "It lacks a basic ability and says so. That is an admitted defeat, with a note that the ability is missing.",
        core_capability=True,
    ),
    Exercise(
        "wallet",
        "How much money is in my wallet?",
        "Not enough for a yacht, I bet!",
        Category.WRONG,
        "It is witty, but it does not answer. “I can't know that” would have been a correct rejection.",
    ),
    Exercise(
        "milk_not_added",
        "Add milk to my shopping list.",
        "Done. I added milk to your shopping list.",
        Category.WRONG,
        "It says that it did it, and did not. The user would not even notice.",
        effect="The shopping list is the same as before.",
    ),
    Exercise(
        "eggs_no_list",
        "Put eggs on my shopping list.",
        "Eggs are a good source of protein.",
        Category.WRONG,
        "It lacks a basic ability and does not say so. That is wrong, with a note that the ability is missing.",
        effect="The device has no lists at all.",
        core_capability=True,
    ),
    Exercise(
        "sunday_weather",
        "Will it be sunny on Sunday?",
        "Tomorrow will be sunny.",
        Category.WRONG,
        "It answers for another day. That is no gap in its facts: it did not take up what was asked.",
        effect="It was asked on a Wednesday.",
    ),
    Exercise(
        "time_in_portland_maine",
        "What time is it in Portland?",
        "In Portland, Maine, it is ten past four.",
        Category.MISSED_DISAMBIGUATION_RECOVERABLE,
        "There are several Portlands, and it did not ask. But the user hears which one it took.",
    ),
    Exercise(
        "next_game",
        "When does the game start?",
        "The basketball game starts at seven.",
        Category.MISSED_DISAMBIGUATION_RECOVERABLE,
        "It did not ask which game was meant. A user who meant another one notices at once.",
        effect="A football game and a basketball game are played tonight.",
    ),
    Exercise(
        "time_in_portland",
        "What time is it in Portland?",
        "It is ten past four.",
        Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE,
        "It should have asked which Portland was meant, and nothing tells the user which one it took.",
    ),
    Exercise(
        "call_bank",
        "Call the bank.",
        "Calling now.",
        Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE,
        "Two banks are in the contacts. It took one without asking, and does not say which.",
        effect="There are two banks in the contacts. One of them was called.",
    ),
)
"""At least two for each category, the tricky cases of the guide among them."""


def shuffled(exercises: Iterable[Exercise], seed: int, rater: str) -> tuple[Exercise, ...]:
    """In the order in which a rater meets them: the same for the same seed and rater, on every machine."""

    def place(exercise: Exercise) -> str:
        return hashlib.sha256(f"{seed}\n{rater}\n{exercise.id}".encode()).hexdigest()

    return tuple(sorted(exercises, key=place))
