"""What is known of a conversation from all sources, put on one clock: pure, and in time linear to what was found."""
