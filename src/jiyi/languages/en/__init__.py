"""English."""

from ..base import DateRules, Language
from . import dates, relative_dates
from .dates import CLOCK
from .en_recurrences import RECURRENCES
from .relative_dates import RANGES, english_number
from .words import STOP_WORDS

_SAID = "said|told|mention|recommend|suggest|gave|given|advis|wrote|list|provid|explain|describ|shar|show|came up"

# As a summary names the user, not "the user interface".
_USER = (
    r"(?:\bthe |^)user\b(?! (?:interfaces?|experience|stor(?:y|ies)|guide|manual|names?|groups?|base|accounts?|ids?"
    r"|tests?|research|data|input)\b)"
)

ENGLISH = Language(
    code="en",
    name="English",
    stop_words=STOP_WORDS,
    first_person=r"\b(?:I|I['’]\w+|me|my|mine|myself|we|our|ours|us)\b",
    speaker_alone=r"\b(?:I|I['’]\w+|me|my|mine|myself)\b",
    second_person=r"\b(?:you|you['’]\w+|yours?|yourself)\b",
    negation=r"\b(?:no|not|never|none|without|un\w{1,20}able)\b|n['’]t\b",
    question=(
        r"\?|\b(?:what|which|who(?:se|m)?|when|where|why|how|should|could|would|please)\b"
        r"|^(?:is|are|was|were|am|do|does|did|has|have|can|will|tell|show|give)\b"
        r"|\b(?:write|draft|book|order|plan|suggest|recommend|cook|make|find|prepare|help|buy|pick|remind)\b"
    ),
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
        r"\b(?:was|were|had|did|didn['’]t|went|got(?! to)|came|saw|been|gone|done|seen|hadn['’]t|wasn['’]t|weren['’]t"
        r"|met|gave|took|broke|fell|found|lost|won|sold|bought|began|begun|died|ate|flew|drove|ran|quit|left|made|became"
        r"|born|slept|woke|wrote|caught|cut|spent|paid|threw|hurt|sent|kept|taught|told|said|built|chose|drew|drank"
        r"|fought|forgot|grew|heard|held|knew|lent|rode|rang|sang|sat|shot|spoke|stole|stood|swam|swore|tore|thought"
        r"|understood|wore|felt|dug|bit|blew|brought|shook|led|froze|hid|laid|lay|sank|swept|taken|given|written|spoken"
        r"|(?<!\bget )(?<!\bgets )(?<!getting )(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bbeing )"
        r"(?!need|feed|indeed|hundred|exceed|succeed|proceed|speed)"
        r"[a-z]{2,20}(?<!suppos)(?<!excit)(?<!worri)(?<!stress)(?<!scar)(?<!tir)(?<!bor)(?<!us)ed)\b"
    ),
    arranged=(
        r"\b(?:booked|signed (?:me |us )?up|scheduled|registered|planned|invited|postponed|pushed|rescheduled|delayed"
        r"|arranged|agreed|decided|ordered|enrolled|entered|confirmed|reserved|hope|want|(?:got|been) (?:moved|pushed)"
        r"|(?:for|by|until|til|till|before|to|moved from) (?:the )?$)"
    ),
    aims_at=r"\b(?:for|by|until|til|till|due|to) (?:the )?$",
    ahead=(
        r"\b(?:will|gonna|(?<!was )(?<!were )going to|(?<!was )(?<!were )about to|shall|should|must|need to|needs to"
        r"|have to|has to|gotta|remind (?:me|us)|don['’]?t (?:let me )?forget|remember to|upcoming|(?<!been )starting"
        r"|let['’]?s|hoping to|planning to|plan to|see you)\b|['’]ll\b|\bwon['’]t\b"
    ),
    present=(
        r"\b(?:is|isn['’]t|are|aren['’]t|am|im|have|has|leaves?|starts?|begins?|ends?|opens|closes?|expires?|arrives?"
        r"|lands?|departs?|fly|flies|turns?|goes|comes|takes place|runs? out|submit|pick up|book|pay|call|due"
        r"|deadline|appointment|interview|exam|meeting|dentist)\b"
        r"|['’](?:s|m|re)\b"
    ),
    since=r"\bsince (?:the )?$",
    habit=(
        r"\b(?:every|each|usually|always|normally|generally|typically|never|often|sometimes|regularly|only|whenever)\b"
        r"|\bday (?:nights|mornings|evenings)\b"
    ),
    yearly=r"\b(?:birthday|b-day|bday|anniversary|name day|born(?! (?:on |last |this )?(?:\w+day|night)))\b",
    clause_end=r"\s(?:and|but|so|because|when|which|while)\s",
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
    routine=r"\b(?:usually|always)\b",
    as_user=(
        (rf"{_USER}['’]s\b", "my"),
        (rf"{_USER} is\b", "i am"),
        (rf"{_USER} has\b", "i have"),
        (rf"{_USER} ((?:\w{{1,20}}ly |also |always )?)((?!was\b|always\b)[a-z]{{2,20}}[^s\W])s\b", r"i \1\2"),
        (_USER, "i"),
    ),
    before_list=(
        r"\b(?:likes?|loves?|enjoys?|hates?|dislikes?|prefers?|speaks?|plays?|eats?|drinks?|owns?|has|have|uses?|needs?"
        r"|knows?|collects?|wears?|stud(?:y|ies)|allergic to|intolerant to|afraid of|fan of|fond of|interested in"
        r"|good at|with|without|for|than|about) "
    ),
    list_joint=r",? and |, (?=.* and )",
    after_list=r" (?:in|on|at|every|from|during|because|when|if|since|but|so|as)\b",
    ordered=(
        r"\b(?:then|next|first(?:ly)?|second(?:ly)?|last(?:ly)?|finally|afterwards?|order\w*|steps?|rank\w*|respectively"
        r"|former|latter|each|pass(?:word|phrase|code)s?|codes?|spell\w*|called|names?)\b"
    ),
    at_time=r"\b(?:on|at|in) (?:the )?$",
    reported=(
        r"\b(?:that|said|says?|tells?|told|thinks?|thought|knows?|knew|hopes?|hoped|heard|hears?|promised?|wants?|wanted"
        r"|plann?(?:ed|s)?|decided|agreed|asked|asks?|remembers?|remind\w*|until|if|or)\b|[,;:]"
    ),
    text_request=(
        r"(?:^|(?<=[.!?] )|(?<=\n))(?=[^\w\n]{0,9}\w)[^\w\n]{0,9}"
        r"(?:(?:please|pls|plz|kindly|hey|hi|ok|now|can you|could you|would you"
        r"|will you|help me(?: to)?|i need you to|i want you to|just)\W{1,4}){0,4}"
        r"(?:translate|proof-?read|re-?write|re-?word|re-?phrase|paraphrase|summari[sz]e|polish|transcribe|spell-?check"
        r"|(?:edit|correct|shorten|improve|fix|check) (?:this|these|it|the|my|any|for)\b(?: \w+){0,2}? ?"
        r"(?:text|grammar|spelling|wording|sentences?|paragraphs?|english|style|mistakes|typos|letter|e?-?mail|draft))\b"
    ),
    phatic=(
        r"\b(?:(?:hi|hiya|hey|hello|yo|good (?:morning|afternoon|evening|night|day)|morning|night|thank you|thanks?)"
        r"(?: (?:there|all|everyone|guys))?|bye|goodbye|brb|gtg|ttyl|see (?:you|ya)(?: (?:later|soon|tomorrow|then))?"
        r"|cheers|ty|thx|a lot|lots|so much|very much|again|please|sorry|you(?:['’]re| are) (?:welcome|the best|great)"
        r"|no (?:problem|worries)|np|welcome|how are (?:you|things)|how(?:['’]s| is) (?:it going|everything)"
        r"|what(?:['’]s| is) up|sup|ok|okay|k|cool|great|(?:very )?nice one|good|perfect|awesome|amazing|lovely"
        r"|sure(?: thing)?|sounds good|got it|al?right|right|fine|well|yes|yeah|yep|yup|no|nope|nah|oh|ah|uh|um+|hm+"
        r"|wow|whoa|oops|lo+l|lmao|rofl|(?:ha){1,20}h?|(?:he){2,20})\b"
    ),
    told_then=(
        r"(?:and |so |please |can you )?(?:(?:tell me|remind me) )?what (?:all |else )?"
        r"(?:(?:did|had|have) (?:i|we) (?:say|said|tell|told|mention(?:ed)?|write|written|do|done|discuss(?:ed)?"
        r"|talk(?:ed)? about|spoken? about)(?: (?:to )?you)?|happened(?: to (?:me|us))?)"
        r"(?: (?:back )?(?:in|on|during|at|from))?"
    ),
    recurrences=RECURRENCES,
    dates=DateRules(
        families=dates.FAMILIES + relative_dates.FAMILIES,
        before=dates.BEFORE,
        after=dates.AFTER,
        clock=CLOCK,
        ranges=RANGES,
    ),
    number=english_number,
)
