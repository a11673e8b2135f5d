//! Other people's clients: what is found is what they do, and nothing else.
