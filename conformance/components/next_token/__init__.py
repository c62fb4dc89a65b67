"""Next token: from the logits of a sequence to the distribution of the token that follows it."""
