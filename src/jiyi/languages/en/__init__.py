"""English."""

from ..base import DateRules, Language
from . import dates, relative_dates
from .dates import CLOCK
from .relative_dates import RANGES, english_number
from .words import STOP_WORDS

_SAID = "said|told|mention|recommend|suggest|gave|given|advis|wrote|list|provid|explain|describ|shar|show|came up"

ENGLISH = Language(
    code="en",
    name="English",
    stop_words=STOP_WORDS,
    first_person=r"\b(?:I|I['’]\w+|me|my|mine|myself|we|our|ours|us)\b",
    speaker_alone=r"\b(?:I|I['’]\w+|me|my|mine|myself)\b",
    second_person=r"\b(?:you|you['’]\w+|yours?|yourself)\b",
    negation=r"\b(?:no|not|never|none|without|un\w{1,20}able)\b|n['’]t\b",
    past_question=(
        r"\b(?:used? to|before|prior to|previous(?:ly)?|former(?:ly)?|earlier|original(?:ly)?|initial(?:ly)?|ago|ever"
        r"|back (?:then|when)|in the past|at first|at that time|(?:my|our|your|his|her|their|the|['’]s) old|history"
        r"|chang(?:e|ed|es|ing)|switch(?:ed)?|at the (?:start|beginning)|back in"
        r"|(?:was|were|had) (?:meant|supposed) to)\b|\b(?:was|were|did|had)\b.{1,60}\bfirst\b"
        r"|\bfirst (?:planned|meant|offered|given|approved|wanted|said|asked)\b"
    ),
    assistant_question=(
        rf"(?<!can )(?<!could )(?<!would )(?<!will )\byou(?:'ve| have| had)? (?:\w{{1,20}} )?(?:{_SAID})"
        r"|\b(?:our|the|that) (?:last |previous |earlier |past )?(?:conversation|chat|discussion|talk)"
        r"|\bwe (?:\w{1,20} )?(?:talk|discuss|chat|spoke|decid|went over)|\bremind me"
        r"|\byour (?:\w{1,20} )?(?:suggestion|recommendation|advice|answer|list|reply|explanation)"
    ),
    past_event=(
        r"\b(?:was|were|had|did|didn['’]t|went|got (?:married|engaged|divorced|fired|promoted|back|home|in)|came|saw"
        r"|met|gave|took|broke|fell|found|lost|won|sold|bought|began|died|ate|flew|drove|ran|quit|left|made|became|born"
        r"|slept|woke|wrote|caught|cut|spent|paid|threw|hurt"
        r"|(?<!getting )(?!need|feed|indeed|hundred|exceed|succeed|proceed|speed)"
        r"[a-z]{2,20}(?<!suppos)(?<!excit)(?<!worri)(?<!stress)(?<!scar)(?<!tir)(?<!bor)(?<!us)ed)\b"
    ),
    arranged=(
        r"\b(?:booked|signed (?:me |us )?up|scheduled|registered|planned|invited|postponed|pushed|rescheduled|delayed"
        r"|arranged|agreed|decided|ordered|enrolled|entered|confirmed|reserved|will|gonna|going to|deadline|due"
        r"|appointment|interview|hope|want|should|need|starting"
        r"|(?:for|by|until|til|till|before|to|moved from) (?:the )?$)"
    ),
    limit=(
        r"\b(?:allerg(?:y|ic|ies)|intoleran(?:t|ce)|vegan|vegetarian|pescatarian|halal|kosher|co?eliac|diabet(?:es|ic)"
        r"|pregnan(?:t|cy)|asthma(?:tic)?|epilep(?:sy|tic)|wheelchair|colou?r[- ]?blind|blind|deaf|hard of hearing"
        r"|dyslexi[ac]|gluten[- ]free|sober|phobia|(?:afraid|terrified|scared) of|(?:sea|car|air|motion)[- ]?sick"
        r"|(?:bad|weak|injured) (?:knees?|back|heart|hip|shoulder))\b"
        r"|\b(?:I|we) (?:really |just )?(?:can['’]?t|cannot|don['’]t|do not|never|won['’]t|must not|mustn['’]t) "
        r"(?!know|think|wait|remember|believe|understand|see|care|mind|want|have|get|mean)\w"
        r"|\bnot (?:allowed|supposed|able) to\b"
    ),
    instruction=(
        r"\b(?:from now on|call me|address me as)\b"
        r"|^\W*(?:please )?(?:always|never|do not|don['’]t) (?:\w{1,20}ly )?(?:answer|reply|respond|write|use|call|book"
        r"|send|give|ask|include|add|format|sign|suggest|recommend|schedule|tell|explain|show|put|start|end|translate)\b"
        r"|\b(?:answer|reply|respond|talk to me|write to me|keep (?:your |the )?(?:answers|replies|responses))"
        r" (?:me )?(?:in|with|as|short|brief)\b|\b(?:your|the) (?:answers|replies|responses) (?:short|brief|concise)\b"
    ),
    injection=(
        r"\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+|the\s+|your\s+)*(?:previous|prior|above|earlier|system)"
        r"|(?:system|developer)\s+(?:prompt|message|instruction)|you\s+are\s+now\b|new\s+instructions?\b|jailbreak"
    ),
    own_label=(
        r"^\W{0,9}(?:(?:so|ok|okay|well|and|but|also|just|oh|hey|here['’]?s|here is|this is|that['’]?s|a|an|the|my|our"
        r"|one|another|some|quick|short|small|big|huge|good|great|bad|sad|happy|latest|life|personal|very|fun|side|final"
        r"|please|to) {1,3}){0,6}"
        r"(?:updates?|news|edit|p\.? ?p?\.? ?s\.?|nb|n\.b\.|notes?(?: to self)?|btw|by the way|fyi|reminder|heads[ -]up"
        r"|correction|clarification|addendum|announcement|important|attention|warning|remember|keep in mind"
        r"|don['’]t forget|for the record|for your (?:info(?:rmation)?|records?)|(?:be )?clear|clarify"
        r"|in (?:short|summary|other words)"
        r"|long story short|tl;? ?dr|bottom line|thing|truth|fact|confession|surprise|guess what|what['’]?s new|plan"
        r"|decision|result|status|background|context|situation|about (?:me|myself|us))"
        r"(?: (?:is|this|everyone|everybody|all|guys|folks|again|from (?:me|us|my side))){0,3}\W{0,9}$"
        # "I switched jobs:", but not "I got this mail:".
        r"|^(?!.{0,200}\b(?:this|these|following|below|texts?|e?-?mails?|messages?|letters?|posts?|stor(?:y|ies)|songs?|lyrics"
        r"|poems?|articles?|pages?|reviews?|sentences?|paragraphs?|quotes?|comments?|chats?|logs?|drafts?|transcripts?"
        r"|says|wrote|read|heard|saw|received|copied|pasted|translated?|told me|was told)\b).{0,200}\bI(?:['’]\w+)? \w"
    ),
    own_thing=r"\W{0,9}(?:my|our)\b(?!.{0,200}\b(?:wrote|writes?|says?|said|texted|told|asked|answered|replied|posted)\b)",
    no_subject=(
        r"\W{0,3}(?:(?:the (?:\w+ )?ones?|the other|the same|both|neither)\b"
        r"|the (?:first|second|third|last|former|latter) (?:was|is|were|had|has|kept|\w+ed)\b"
        r"|(?:wants|prefers|needs|likes|hates|loves|lives|works|speaks|has|says|plays|was|won['’]t|doesn['’]t|didn['’]t)\b)"
    ),
    next_thought=(
        r"[,;]? (?=(?:and|but|so|also|oh|anyway|plus)(?: (?:also|then|now|btw|by the way))? (?:i|i['’]\w+|my|we|our)\b)"
    ),
    next_claim=r"[,;]? (?:and|but) (?=(?:i|i['’]m|i['’]ve)\b)",
    comma_splice=r"[,;] (?=(?:i|i['’]m|i['’]ve|my|our|we)\b)",
    main_clause=r"\W{0,3}(?:(?:hi|hello|hey|so|well|oh|ok|anyway)\W{1,3}){0,2}(?:i|i['’]\w{1,4}|my|our|we)\b \w",
    text_request=(
        r"(?:^|(?<=[.!?] )|(?<=\n))(?=[^\w\n]{0,9}\w)[^\w\n]{0,9}"
        r"(?:(?:please|pls|plz|kindly|hey|hi|ok|now|can you|could you|would you"
        r"|will you|help me(?: to)?|i need you to|i want you to|just)\W{1,4}){0,4}"
        r"(?:translate|proof-?read|re-?write|re-?word|re-?phrase|paraphrase|summari[sz]e|polish|transcribe|spell-?check"
        r"|(?:edit|correct|shorten|improve|fix|check) (?:this|these|it|the|my|any|for)\b(?: \w+){0,2}? ?"
        r"(?:text|grammar|spelling|wording|sentences?|paragraphs?|english|style|mistakes|typos|letter|e?-?mail|draft))\b"
    ),
    ending=(
        r"(?P<thing_en1>\b(?<!['&-])(?!(?:i|we|he|she|they|it|you|who)\b)\w[\w'&-]{0,39}(?: [\w'&-]{1,40}){0,3}?)"
        r" (?:has |have |was |were |is |are |got |just |been |finally |sadly ){0,6}"
        r"(?:died|passed away|put to sleep|put down|cancell?ed|called off|dead|fell through)\b"
        r"|\b(?:sold|quit|cancell?ed|stopped|dropped|gave up|given up|called off|broke up with|split up with|got rid of"
        r"|packed in|withdrew from|(?:i'm|im|i am|pulled|backed|dropped) out of(?= the)"
        r"|no longer have|no longer do|(?:taken|took|came|come|coming) (?:me |him |her )?off) "
        r"(?!by\b)(?:(?:my|the|our|taking|doing|going to|using|playing|eating|drinking) ){0,6}"
        r"(?P<thing_en2>[\w'&-]{1,40}(?: [\w'&-]{1,40})?)"
    ),
    moving=(
        r"(?P<thing_en1>\b(?<!['&-])(?!(?:i|we|he|she|they|it|you|who)\b)\w[\w'&-]{0,39}(?: [\w'&-]{1,40}){0,3}?)"
        r" (?:has |have |was |were |is |are |got |just |been |now ){0,6}"
        r"(?:moved|rescheduled|postponed|pushed|shifted|brought forward|put back|put off)(?: back)?"
        r" (?:from|to|until|till) §"
        r"|\b(?:moved|rescheduled|postponed|pushed|shifted|put off) (?:back )?(?:my|our|the) "
        r"(?P<thing_en2>[\w'&-]{1,40}(?: [\w'&-]{1,40}){0,2}?) (?:back )?(?:from|to|until|till) §"
    ),
    moving_words=("moved", "rescheduled", "postponed", "pushed", "shifted", "brought", "put"),
    ending_words=(
        "died",
        "passed",
        "put",
        "cancel",
        "called",
        "dead",
        "fell",
        "sold",
        "quit",
        "stopped",
        "dropped",
        "gave",
        "given",
        "broke",
        "split",
        "rid",
        "packed",
        "withdrew",
        "out",
        "longer",
        "off",
    ),
    told_then=(
        r"(?:and |so |please |can you )?(?:(?:tell me|remind me) )?what (?:all |else )?"
        r"(?:(?:did|had|have) (?:i|we) (?:say|said|tell|told|mention(?:ed)?|write|written|do|done|discuss(?:ed)?"
        r"|talk(?:ed)? about|spoken? about)(?: (?:to )?you)?|happened(?: to (?:me|us))?)"
        r"(?: (?:back )?(?:in|on|during|at|from))?"
    ),
    asked_question=r"\b(?:ask(?:ed|ing)?|question|request(?:ed)?)\b",
    dates=DateRules(
        families=dates.FAMILIES + relative_dates.FAMILIES,
        before=dates.BEFORE,
        after=dates.AFTER,
        clock=CLOCK,
        ranges=RANGES,
    ),
    number=english_number,
)
