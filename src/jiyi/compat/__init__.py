"""Interfaces of other memory libraries over a Jiyi memory."""
