"""`cru agents` and `cru tasks`: who may work beside the conversation, and what does."""
