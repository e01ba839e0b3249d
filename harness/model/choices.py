"""Words that people choose among: options of the command line and keys of files.

They stand apart from the code that acts on them, so that listing the choices imports nothing else.
"""

from __future__ import annotations

from enum import StrEnum


class Grouping(StrEnum):
    """What trials can be grouped by: axes of the matrix, and properties of the trial itself.

    Without such an axis in the matrix, the label describes how the trial sounds.
    """

    VOICE = "voice"
    LEVEL = "level_dbfs"
    GAP = "gap_ms"
    POSITION = "position"
    NOISE = "noise"
    OPENING = "opening"
    ROOM = "room"
    DISTANCE = "distance_m"
    ANGLE = "angle_deg"
    DEVICE_SETTINGS = "device_settings"
    CONDITION = "condition"
    DEVICE = "device"
    QUERY = "query"
    QUERY_CLASS = "query_class"
    KIND = "kind"
    RECORDING = "recording"


class CategoryGroup(StrEnum):
    """Named groups of the eleven categories. `MEMBERS` lists the categories of each."""

    SATISFIED = "satisfied"
    HELPFUL = "helpful"
    ASKS_BACK = "asks_back"


class Reading(StrEnum):
    """The two readings of the guide's rule on missing functionality.

    They differ where a device admits that it lacks a core capability: that is admitted defeat, or a wrong response.
    """

    ADMITTED = "a"
    WRONG = "b"


class LimitTarget(StrEnum):
    """What a limit is compared with: the estimate, or an end of its interval. SAFE: the end that is harder to keep."""

    POINT = "point"
    LOWER = "lower"
    UPPER = "upper"
    SAFE = "safe"


class ResultGrouping(StrEnum):
    """What results can be grouped by, beside the axes of conditions.

    ATTEMPTS: the number of attempts until the query was recognised.
    """

    DEVICE = "device"
    CLASS = "class"
    QUERY = "query"
    ATTEMPTS = "attempts"
    SESSION = "session"


class TargetBasis(StrEnum):
    """What must keep the target. ESTIMATE: the rate itself. BOUND: the upper end of its 95 % interval."""

    ESTIMATE = "estimate"
    BOUND = "bound"


class LimitBasis(StrEnum):
    """What a limit is compared with. BOUND: the upper end of the 95 % interval, which is what a claim needs."""

    BOUND = "bound"
    ESTIMATE = "estimate"


class MarkScope(StrEnum):
    """In which texts the notation for alternatives, optional words and tags applies.

    In other texts, its characters are part of the words.
    """

    BOTH = "both"
    REFERENCE = "reference"
    NONE = "none"


class TextUnit(StrEnum):
    """What is counted in texts. CHAR: grapheme clusters after NFC; spaces do not count.

    MIXED: characters of scripts that are written without spaces, and words of all others.
    """

    WORD = "word"
    CHAR = "char"
    MIXED = "mixed"


UNIT_NOUNS = {TextUnit.WORD: "word", TextUnit.CHAR: "character", TextUnit.MIXED: "unit"}
ERROR_RATES = {TextUnit.WORD: "WER", TextUnit.CHAR: "CER", TextUnit.MIXED: "MER"}


class JudgmentFormat(StrEnum):
    """How a file of judgments is written; the values are the suffixes."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


class AlignmentSelection(StrEnum):
    """For which utterances a scoring shows the alignment, reference and hypothesis word below word."""

    ERRORS = "errors"
    ALL = "all"


class TranscriptFormat(StrEnum):
    """How a file of transcripts is written; the values are the suffixes.

    KALDI: an id and its words in each line. JSONL: an object in each line, such as the manifests of NeMo.
    SEGLST: segments as one JSON list, as meeteval writes them.
    """

    TRN = "trn"
    CTM = "ctm"
    STM = "stm"
    SRO = "sro"
    CSV = "csv"
    KALDI = "kaldi"
    JSONL = "jsonl"
    SEGLST = "seglst"


class ProposalMethod(StrEnum):
    """What proposes labels for utterances that nobody has labelled."""

    TRI_TRAINING = "tri-training"
    CLASSIFIER = "classifier"


class SpeakerPairing(StrEnum):
    """How the speakers of two transcripts of a recording with several are paired.

    CP: concatenated minimum permutation. TCP: the same, time-constrained. ORC: optimal reference combination.
    """

    CP = "cp"
    TCP = "tcp"
    ORC = "orc"


class CorpusFormat(StrEnum):
    """BIO: a folder with seq.in, seq.out and label. CSV: intents by id. TXT, TRN: texts without annotation."""

    BIO = "bio"
    JSONL = "jsonl"
    CSV = "csv"
    TXT = "txt"
    TRN = "trn"


class CountedAttempt(StrEnum):
    """Which attempt of a trial counts: the first one that tests the device, or the one that decided the trial."""

    FIRST = "first"
    DECIDING = "deciding"


class EpisodesEnding(StrEnum):
    """Why the tri-training of three classifiers ended.

    SETTLED: almost nothing changed in the last episode. CIRCLING: the three teach each other the same labels as in an
    earlier episode, so that they would repeat themselves for ever. MOST: the largest number of episodes was reached.
    """

    SETTLED = "settled"
    CIRCLING = "circling"
    MOST = "most episodes"


class FileKind(StrEnum):
    """The first key of each kind of file."""

    SCENARIO = "scenario"
    BENCH = "bench"
    DEVICE = "device"
    NORMALISATION = "normalisation"
    ROUND = "round"
    TRAINING = "training"
    GOLD = "gold"
    RATER_KEYS = "rater_keys"
    GRAMMAR = "grammar"
    LABEL_SET = "label_set"
    CONDITIONS = "conditions"


class EncodingName(StrEnum):
    """How sound is encoded on the wire to a board."""

    PCM16 = "pcm16"
    ULAW = "ulaw"
    ADPCM = "adpcm"


class InjectionPace(StrEnum):
    """Speed of an injection: as fast as the board acknowledges it, or in real time."""

    FASTEST = "fastest"
    REALTIME = "realtime"


CONFIDENCE = 0.95
POWER = 0.8
ALPHA = 0.05  # 1 − CONFIDENCE.
TWV_BETA = 999.9
"""Cost of a false accept relative to a miss, with one trial per second: (C / V) (1 / P − 1); C/V = 0.1, P = 10⁻⁴."""
MAX_EPISODES = 30  # As in the MEDIA intents paper.
SEED_SHARE = 1000 / 1240
"""Share of the labelled utterances that are drawn for each classifier (the MEDIA intents paper, section 3.1.2)."""
DEFAULT_CLASSIFIER = "tfidf"
SPLIT = "split"
"""The column of a corpus that names the split of an utterance."""
DEV_SPLITS = ("dev", "valid", "validation")
"""Names for the development split; a folder has at most one of them."""
MAX_CONFUSIONS = 20
"""Most confusions that a report lists, unless the user asks for more."""
LISTED_UTTERANCES = 20
"""Most utterances that a report lists, unless the user asks for more."""
SOUND, BROKER, ASSISTANT = "sound server", "broker", "assistant"
LAB_PARTS = (SOUND, BROKER, ASSISTANT)
YARDSTICKS_KNOWN = ("atis", "snips")
By = ResultGrouping | Grouping
CONDITIONS = (Grouping.VOICE, Grouping.LEVEL, Grouping.GAP, Grouping.POSITION, Grouping.NOISE, Grouping.CONDITION)
_ALL_BY = (*ResultGrouping, *CONDITIONS)
GROUPINGS: dict[str, By] = dict(zip(map(str, _ALL_BY), _ALL_BY, strict=True))
HANG_AFTER_S = 60.0
"""How much longer than its length explains an engine may work on a file before it counts as hanging."""
