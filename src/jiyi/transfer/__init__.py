"""Import and export of memories and chats."""
