"""Edit and retry: what exactly will be sent in the place of a dead message?"""
