"""One folder per component: specification, definition, cases, checks."""
