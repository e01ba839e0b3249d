#!/usr/bin/env python3
"""A program that rates first responses by a few rules (docs/how-to/let-a-program-rate.md). Standard library only.

It reads words, not meaning: it finds questions and apologies, and it believes evidence of an effect. It cannot
distinguish a right fact from a wrong one, so it never says "wrong" without evidence. Copy it, and put your
own rules or a language model in `judged`.
"""

import json
import re
import sys

DETAIL = re.compile(r"\b(a\.? ?m\.?|p\.? ?m\.?|what time|which (list|room|day)|how long|for when|what name)\b")
MEANING = re.compile(r"^(was that|did you mean|do you mean|which one)\b|\bor\b")
CANNOT = re.compile(r"\b(can(no|')?t help|don't know|do not know|not sure|sorry|unable|can't do)\b")
PRIVATE = re.compile(r"\b(my|i|me)\b")
SEVERAL = re.compile(r"\b(here are|results|websites|pages|i found)\b")
EFFECTS = {"right": "correct", "partial": "partially_correct", "wrong": "wrong"}


def judged(item):
    """(category, confidence, reason) of one response."""
    evidence = item["evidence"]
    if evidence["effect"] in EFFECTS:
        return EFFECTS[evidence["effect"]], 0.95, f"the effect was {evidence['effect']}"
    if item["transcript"] is None:
        return None, 0.0, "there is no transcript, and these rules cannot hear"
    query, response = item["query"].lower(), item["transcript"].lower()
    if CANNOT.search(response):
        if PRIVATE.search(query) and not evidence["core_capability"]:
            return "correct_rejection", 0.6, "it declines a question about the speaker"
        return "admitted_defeat", 0.8, "it says that it cannot"
    if DETAIL.search(response) and len(response.split()) <= 8:
        return "slot_request", 0.8, "a short question for a detail"
    if MEANING.search(response) and len(response.split()) <= 8:
        return "clarification", 0.7, "a short question about the meaning"
    if SEVERAL.search(response):
        return "findable", 0.5, "it lists several things"
    return "correct", 0.3, "no rule applies, and most answers are correct"


def say(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main():
    say({"protocol": 1, "name": "rule-rater", "version": "1"})
    for line in sys.stdin:
        category, confidence, reason = judged(json.loads(line))
        if category is None:
            say({"error": reason})
        else:
            say({"category": category, "confidence": confidence, "reason": reason})


if __name__ == "__main__":
    main()
