"""Patterns by which claims are compared with what was said, in English and Chinese."""

import re

from ...languages.terms import tokens

BREAK = re.compile(
    r"[!?;\n。！？；，…]+|[.,:：](?!\d)|\s(?:and|but|because|so|while|when|though|although|which|who)\s|但是?|而且|并且|因为|所以|不过(?![敏关])",
    re.IGNORECASE,
)
# Where a part of a memory ends that can stand without the rest.
PART = re.compile(
    r"(?<=[\w)）])(?:;|；|: |,? (?:so|because|but|as|after|due to)\b| and (?=[a-z]+s\b)|\. (?=\w)|。(?=\w)|，)"
)
HAN = re.compile(r"[\u4e00-\u9fff]")
# An addition that says why, when or as what.
ADJUNCT = re.compile(r"\s(?:after|before|as an?|due to|since|during|despite|thanks to)\s", re.IGNORECASE)
HARD = re.compile(
    r"\b(?:not|never|no|none|nobody|cannot|cant|dont|doesnt|didnt|isnt|arent|wasnt|werent|wont|havent|hasnt|hadnt|wouldnt"
    r"|couldnt|shouldnt|without|neither|nor)\b|n['’]t\b"
    r"|不(?!错|过(?![敏关])|仅|但|管|止|久|同|少|断|得不|好意思)|没(?!准|错|事)|未(?!来|婚)|(?<!非)无(?!论)|别(?!人|的|墅|名)|勿",
    re.IGNORECASE,
)
QUESTION_FORM = re.compile(r"(.)[不没]\1|有没有|是不是|要不|差不多|对不起|不好意思|no wait|no\.")
# Words that deny without a negation.
SOFT = re.compile(
    r"\b(?:quit|stop\w*|cancel\w*|off|out|over|end(?:ed|s)?|gone|avoid\w*|hates?|hated|dislikes?|can't stand|refus\w*"
    r"|lost|fail\w*|lacks?|free|instead|former\w*|used to|ex|left|leaves?|leaving|unable|gave up|drop\w*|any ?more"
    r"|done with|except|only|just|unless|pulled|deferred|alone|single|secret|veggie"
    r"|vegetarian|vegan|fallen through|sick of|gag|abide)\b"
    r"|戒|退|取消|停|讨厌|忌|避|离开|辞|结束|黄了|拒|免|受不了|头疼|除了|换|改|少|只|素|反感|扛不住",
    re.IGNORECASE,
)
# A change or an end.
ENDS = re.compile(
    HARD.pattern
    + "|"
    + SOFT.pattern
    + r"|\b(?:mov(?:ed?|ing)|chang\w*|switch\w*|new|now|rebook\w*|postpon\w*|push\w*|sold"
    r"|finished|passed|dead|died|actually|wait|sorry|already)\b|搬|换|改|新|现在|卖|完|不再|已经|记错|说错",
    re.IGNORECASE,
)
# Something that was given up, with the word for it.
GIVEN_UP = re.compile(
    r"\b(?:gave up|given up|giving up|quit|quits|stopped|no longer|done with|cancell?ed|dropped|sold)\s+"
    r"((?:[\w'-]+\s+){0,2}[\w'-]+)"
    r"|(?:戒|取消|退|停|放弃|辞|卖)(?:掉|了)*([\u4e00-\u9fff]{1,4})",
    re.IGNORECASE,
)
STILL = re.compile(r"\bstill\b|还在|仍", re.IGNORECASE)
LIKES = re.compile(r"\b(?:likes?|loves?|enjoys?|adores?|fond of|into)\b|(?<!不)喜欢|爱吃|爱喝|最爱|热爱", re.IGNORECASE)
HATES = re.compile(
    r"\b(?:hates?|dislikes?|detests?|can't stand|cannot stand|afraid of|scared of|dreads?)\b"
    r"|讨厌|不喜欢|不爱|反感|受不了|怕",
    re.IGNORECASE,
)
# Words of which a memory must not have the other one.
OPPOSITES = tuple(
    (re.compile(one, re.IGNORECASE), re.compile(other, re.IGNORECASE))
    for one, other in (
        (r"\b(?:buys?|bought|buying)\b|买", r"\b(?:sells?|sold|selling)\b|卖"),
        (r"\b(?:start\w*|began|begins?|takes?|taking)\b|在吃|开始", r"\b(?:quit|stop\w*|taken off)\b|停|戒"),
        (r"\b(?:likes?|loves?|enjoys?)\b|喜欢", r"\b(?:allergic)\b|过敏"),
        (r"\b(?:lives?|living|moved to)\b|住", r"\b(?:works?|working|job)\b|工作|上班"),
        (r"\b(?:lives?|living)\b|住", r"\b(?:visit\w*|trip|holiday|vacation|stud(?:y|ies|ying))\b|出差|旅游|读书|玩"),
        (r"\b(?:works?|working)\b|工作|上班", r"\b(?:stud(?:y|ies|ying)|visit\w*|trip)\b|读书|旅游|玩|出差"),
        (r"\b(?:born|grew up)\b|出生|老家", r"\b(?:lives?|living|works?|moved)\b|住|工作|搬"),
        (r"\b(?:married|wedding)\b|结婚", r"\b(?:divorc\w*|engaged|split)\b|离婚|订婚|分手"),
        (r"\b(?:wins?|won)\b|赢", r"\b(?:lose|lost|loses)\b|输"),
        (r"\b(?:older)\b|比.{0,6}大", r"\b(?:younger)\b|比.{0,6}小"),
        (r"\b(?:pass|passed|passes)\b|通过|考上", r"\b(?:fail\w*)\b|没过|挂科|落榜"),
        (r"\b(?:accept\w*|agree\w*)\b|同意|接受", r"\b(?:reject\w*|refus\w*|declin\w*)\b|拒绝|反对"),
        (r"\b(?:arriv\w*)\b|到达", r"\b(?:leav\w*|left|depart\w*)\b|离开"),
        (r"\b(?:open(?:s|ed|ing)?)\b|开业|开张", r"\b(?:clos(?:e|es|ed|ing))\b|关门|倒闭"),
        (r"\b(?:borrow\w*)\b|借了?(?=.{0,6}的)", r"\b(?:lend\w*|lent)\b|借给"),
        (r"\b(?:hired|hires|promoted)\b|录用|升职", r"\b(?:fired|laid off|demoted)\b|开除|辞退|降职"),
        (r"\b(?:cheaper|lower|less|fewer|down)\b|便宜|降|跌", r"\b(?:pricier|higher|more|up)\b|涨|升"),
        (r"\b(?:earlier|before)\b", r"\b(?:later|after)\b"),
        (r"\b(?:healthy|recovered|well)\b|康复|出院", r"\b(?:ill|sick|relapsed)\b|生病|住院"),
        (r"\b(?:mornings?)\b|早上|上午", r"\b(?:evenings?|nights?)\b|晚上|夜里"),
        (r"\b(?:left)\b|左", r"\b(?:right)\b|右"),
    )
)
UNREAL = re.compile(
    r"^\W*(?:haha\s*|lol\s*)?(?:if|imagine|suppose)\b|\bi wish\b|\b(?:maybe|perhaps|only|unless) if\b"
    r"|(?<!see )(?<!know )(?<!ask )\bif (?:i|we|he|she|it|they|one|there)(?:['’]\w+)?\b(?! (?:remember|recall|think))"
    r"|^\W*(?:要是|如果|假如|万一|倘若)|(?:要是|如果|假如|万一|倘若)[^，。]{0,20}$",
    re.IGNORECASE,
)
HEDGED = re.compile(
    r"\b(?:if|would|might|may|could|wish\w*|joke\w*|imagin\w*|dream\w*)\b|如果|要是|假如|可能|开玩笑|幻想",
    re.IGNORECASE,
)
REFERS = re.compile(
    r"\b(?:he|she|it|they|him|her|his|them|their|hers?|hes|shes|its|theyre|this|that|these|those|there|one|ones|we|us|our)\b"
    r"|(?<![吉其])他|[她它这那咱]|我们|大家",
    re.IGNORECASE,
)
WE = re.compile(r"\b(?:we|us|our|both|and|with|together|w)\b|我们|咱|和|跟|与|一起|俩|带", re.IGNORECASE)
FIRST_PERSON = re.compile(
    r"\b(?:i|i['’]?m|im|i['’]?ve|ive|i['’]?ll|ill|i['’]?d|me|my|mine|myself|we|our|us)\b|[我咱俺]", re.IGNORECASE
)
I_DO = re.compile(
    r"(?:^|\s)(?:i|i['’]?m|im|i['’]?ve|ive|i['’]?ll|i['’]?d)\s(?!\w+ my \w+ (?:is|was|has))"
    r"|(?<![让叫给对跟和把被])我(?!们|的|家|[男女老妈爸哥姐弟妹爷奶儿女孙妻丈媳婆公岳朋同闺])",
    re.IGNORECASE,
)
_KIN = (
    (
        "husband|wife|partner|fianc[eé]+|girlfriend|boyfriend|girl|bf|gf|fella|spouse"
        "|老公|老婆|丈夫|妻子|男朋友|女朋友|男友|女友|对象|老伴|爱人|媳妇|先生|太太"
    ),
    "sons?|boys?|kids?|child|children|baby|babies|twins|儿子|孩子|宝宝|娃",
    "daughters?|girls?|kids?|child|children|baby|babies|twins|女儿|孩子|宝宝|娃|闺女",
    "mothers?|mum|mom|mama|parents|妈妈?|母亲|老妈|爸妈",
    "fathers?|dad|papa|parents|爸爸?|父亲|老爸|爸妈",
    "brothers?|siblings?|uncle|哥哥?|弟弟?|兄弟",
    "sisters?|siblings?|auntie?|姐姐?|妹妹?|姐妹",
    "gran|grandma|grandmother|nana|nani|abuela|奶奶|外婆|姥姥",
    "grandpa|grandfather|grandad|爷爷|外公|姥爷",
    "grandsons?|granddaughters?|grandchild|grandchildren|grandkids?|孙子|孙女|外孙",
    "cousins?|niece|nephew|in-law|表[哥弟姐妹]|堂[哥弟姐妹]|侄|舅|姑|姨",
    "boss|manager|supervisor|老板|领导|导师|上司",
    (
        "colleagues?|teacher|coach|doctor|dr|landlord|flatmate|roommate|neighbou?rs?|friends?"
        "|同事|老师|教练|医生|大夫|房东|室友|邻居|朋友|闺蜜|同学"
    ),
)


def sequence(text: str) -> list[str]:
    """Return the stems of English words and the single Chinese characters of a text in their order."""
    found = re.findall(r"[A-Za-z]+(?:['’-][A-Za-z]+)*|[\u4e00-\u9fff]", text)
    return [next(iter(tokens(one)), one.lower()) if one.isascii() else one for one in found]


def _kin(listing: str) -> re.Pattern[str]:
    words = listing.split("|")
    english = "|".join(word for word in words if word.isascii() or "é" in word)
    return re.compile(rf"\b(?:{english})\b|" + "|".join(word for word in words if not word.isascii()), re.IGNORECASE)


KINS = tuple(map(_kin, _KIN))
SAME = (
    *KINS[:-2],
    _kin("doctor|dr|gp|医生|大夫"),
    _kin("boss|manager|supervisor|老板|领导|上司"),
)  # one word for another
_RELATIVE, _PROFESSION = _kin("|".join(_KIN[:-2])), _kin("|".join(_KIN[-2:]))
_IS = re.compile(r"(?:\b(?:is|was|as|been)\b[^,.;]{0,30}|是[^，。；]{0,12})$")
# "baby photos" mention no child.
BABY_THINGS = re.compile(
    r"\b(?:baby|childhood|children['’]s|kids?['’]?) (?:photos?|pictures?|pics?|shower|names?|clothes|food|books?)\b",
    re.IGNORECASE,
)
_OF_BABY = re.compile(r"(?:baby|babies|child|children|kids?)$", re.IGNORECASE)  # "baby shower"


def persons(text: str) -> list[str]:
    """Return the words for relatives and other people in a text, unless they say what somebody is by profession."""
    others = [one.group() for one in _PROFESSION.finditer(text) if not _IS.search(text, 0, one.start())]
    return [*others, *relatives(text)]


def relatives(text: str) -> list[str]:
    return [one for one in _RELATIVE.findall(text) if not _OF_BABY.match(one)]


SOMEBODY = re.compile(
    r"^\W*(?i:oh |so |ok |well |and |but |also |yeah |haha )*(?:(?i:my|our|his|her|their)\s+(?P<kin>\w+(?:\s+\w+)?)"
    r"|(?P<bare>(?i:dad|daddy|mum|mummy|mom|mama|papa|gran|grandma|grandpa|grandad|nana|hubby))(?:['’]s)?\b"
    r"|(?P<he>(?i:he|she|they|hes|shes|he's|she's|they're)\b)"
    r"|(?!(?:I|We|My|Our|You|The|It|This|That|There|If|No|Yes|Please|Can|Could|Do|Put|Just|Also|Right|None|What|When"
    r"|Where|How|Why|Who|Got|Had|Is|Are|Was|A|An|And|But|So|In|On|At|For|From|Now|Then|Today|Tomorrow|Next|Last)\b)(?P<name>[A-Z][a-z]+)(?:'s)?\b)"
    r"|^\W*(?:(?:我|咱)(?:们家|家|的)?(?P<zkin>[男女]朋友|[老小]?[\u4e00-\u9fff]{1,2})|(?P<zhe>[他她它])"
    r"|(?P<zbare>老伴|儿子|女儿|老[公婆妈爸]|妈妈|爸爸|奶奶|爷爷|外[婆公]|孙[子女]|外孙女?|媳妇|[哥姐弟妹]{2}))"
)
CAPITALISED = re.compile(r"\b[A-Z][\w’'-]+")
SUBJECT = re.compile(
    r"\W{0,20}(?:['’]s\s{1,3})?(?:[a-z]{1,30}\s{1,3}){0,2}[A-Z][\w’'-]{1,60}"
    r"(?:\s{1,3}(?:and\s{1,3})?[A-Z][\w’'-]{1,60}){0,20}"
)
HE = re.compile(
    r"\b(?:he|she|they|it|hes|shes|theyre|he['’]s|she['’]s|they['’]re)\b|(?<![吉其])他|[她它]", re.IGNORECASE
)
PREPOSITION = re.compile(r"\s(?:at|in|on|for|with|to|of|from|by)\s", re.IGNORECASE)
YEAR = re.compile(r"(?:19|20)\d\d")
INNER_NAME = re.compile(
    r"(?<=[a-z,;] )(?!I\b|I['’]"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\b)"
    r"[A-Z][\w’'-]+"
)
PLACED = re.compile(
    r"(?:[在到去和跟与叫给向]|女儿|儿子|老公|老婆|妈妈|爸爸|[妹弟哥姐]|孙子|朋友|同事|老师|考上了?|买了?)([\u4e00-\u9fff]{2})"
)
# A short name after the person or animal that has it: 儿子小乐. 儿子小学毕业 and 姐姐老家 have none.
SHORT_NAME = re.compile(
    r"(?:儿子|女儿|孙[子女]|外孙女?|老[公婆]|丈夫|妻子|爱人|[男女]?朋友|同[事学]|邻居|弟弟?|妹妹?|哥哥?|姐姐?|[猫狗])[叫是]?"
    r"((?:小(?![时学组区心朋孩声说的])|老(?![师板家是公婆年人])|阿(?!姨))[\u4e00-\u9fff])"
)
# "at 9, no wait, at 11", 语文92，哦不对，语文95
CORRECTION = re.compile(
    r"[,.;–—-]\s*(?:(?:oh |er |um )?(?:no,? wait|wait,? no|wait(?=,)|actually,? no|no,? actually|scratch that|make that"
    r"|correction|my mistake)\b|(?:no |oops )?sorry,? i meant?\b"
    r"|(?:sorry,|no,|i meant?)(?=\s(?:(?:at|on|in|it's|the|to|for) )?[\w']+\s*(?:[.!?,;]|$)))[,:;.…]*"
    r"|[，,。；…—\s](?:哦|啊|诶|哎|呃|噢|哎呀)?(?:不对不对|不对|不是|[说记搞弄写打]错了?|口误|更正)[了啊哈呀]?"
    r"(?:[，,。：:；…\s]+|$)(?:应该)?是?",
    re.IGNORECASE,
)
# "Ida asked Max to bake"; "do not tell" is no promise
ASKS = re.compile(r"\b(?:asks|asked|tells|told|wants) \w{1,30} to\b|(?<=\w)[让叫请](?=\w)")
PROMISES = re.compile(r"\b(?:would|will) not\b|\bwon['’]t\b|\bwouldn['’]t\b", re.IGNORECASE)
FORBIDS = re.compile(r"(?:please |so )?(?:do not|don['’]?t|never)\b", re.IGNORECASE)
CAUSE = re.compile(r",? \b(?:so|therefore|because)\b(?! (?:much|many|far|that|on)\b)|，?(?:所以|因此|因为|于是)")
ASSISTANT, YOU = (
    re.compile(r"(?:the )?assistant\b|助[手理]", re.IGNORECASE),
    re.compile(r"\byou|[你您]", re.IGNORECASE),
)
POSSESSIVE = re.compile(r"^(?:['’]s\b|的)?\s*")
SAID_NUMERAL = re.compile(
    "(?:(?<=[第周期拜号])[一二两三四五六七八九十百]{1,5}"
    "|[一二两三四五六七八九十百]{1,5}(?=[片次个岁年万块元点天周月人只本公里斤杯家条号日期楼层分秒时度级名位张件份间遍场项门式多成千亿倍]|$|\\W))"
)
COUNTED = re.compile("[二两三四五六七八九十百]{1,5}(?=[片次个岁年万块元点天周月人只本公里斤杯家条])")
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
HALF = re.compile(r"\bhalf\b|半", re.IGNORECASE)
ORDINALS = {
    word: at
    for at, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
            "thirteenth",
            "fourteenth",
            "fifteenth",
            "sixteenth",
            "seventeenth",
            "eighteenth",
            "nineteenth",
            "twentieth",
        ],
        1,
    )
} | {
    "thirtieth": 30,
    "fortieth": 40,
    "fiftieth": 50,
    "sixtieth": 60,
    "seventieth": 70,
    "eightieth": 80,
    "ninetieth": 90,
}
OBJECT = re.compile(r"\b(?:me|us)\b|(?<=[教给让带帮送借叫请陪])我", re.IGNORECASE)
THROUGH = re.compile(
    r"(?:\b(?:by|from|with|of|for|to|than|and|at|in|on)\s+(?:\w+['’]?s?\s+){0,2}|[被从由让跟和与给的])$", re.IGNORECASE
)
FILLERS = frozenset(
    tokens("""
    user has have had is are was were be been being the a an of to in on at for with by from about now currently still
    also very really more wants want plans plan planned will would can able called named name told says said get gets
    got make makes made use uses go goes going gone went year years month day week weekend time new one two first
    every since until during after before who which that this it its his her their them they she he him longer
    take takes took give gave find finds think thinks feel feels like likes love loves hate hates dislike pay
    pays paid cost costs have own owns come comes coming came see sees meet meets eat eats drink drinks play plays sell
    sold choose chose there please born birth appointment prefers prefer suggested recommended advised assistant early
    late mid person people something anything thing live lives living lived
""")
) | frozenset(
    "用户的了在是有和跟与要想会能把被给让对从到去来上下个们也都还就很最说叫做人年月日天时"
    "自己过住工作喜欢讨厌爱吃喝太已再平时前后以现目助手建议推荐"
)
