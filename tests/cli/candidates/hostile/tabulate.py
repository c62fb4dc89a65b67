raise RuntimeError("the judge imported the candidate's module")
