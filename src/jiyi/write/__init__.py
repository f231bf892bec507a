"""Messages in, memories out: accept → extract → index → save."""
