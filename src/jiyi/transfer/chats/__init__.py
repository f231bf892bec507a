"""Past chats, read from files: exports of ChatGPT and Claude, OpenAI-style messages, LoCoMo and LongMemEval.

    for chat in read_chats(path): ...

Readers are pure: values of a file go in, `Chat`s come out. What is wrong is named by file and place.
"""
