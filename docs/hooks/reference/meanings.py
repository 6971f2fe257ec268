"""What keys mean whose models carry no description of their own: by table, then by key. None may be missing."""

from __future__ import annotations

from dpaudit.claims import FORMS

Meanings = dict[str, dict[str, str]]

FACETS: dict[str, dict[str, str]] = {  # the members of a class by what they tell, those that are asked for first
    "AuditResult": {
        "The verdict": "verdict refuted p_value condition diagnosis exit_code raise_if_refuted",
        "The bound": "epsilon_lower mu_lower rho_lower certificate certifier level ceiling holm cross_check "
        "model_based upper lower_bound bracket",
        "Witness and evidence": "witness evidence main contains others plain representation "
        "representation_refuted units",
        "What could have been seen": "least_found least_caught power_reached controls explored unseen unpaired unread",
        "The question": "name claim pair distance spec adjacency shown on_trust further_apart",
        "The experiment": "health reproducible runs_used searching_runs certifying_runs blocks stopped_early "
        "milestones cut_short",
        "Show and keep it": "explain plot illustration to_frame save to_json to_dict provenance",
    },
}

CLAIMED = {
    "claim": "what is promised, in any form, such as `dpaudit.GaussianDP(1.0)`",
    "epsilon": "the same in short, in nats",
    "delta": "beside `epsilon`",
}
KEYWORDS: Meanings = {  # of functions with many parameters; those that are options of an audit have the words of these
    "audit_training": CLAIMED
    | {
        "train": "`train(included, rng)` trains once and returns a score for each canary, higher where it looks as if "
        "the canary was in; `included` says which are. Or `dpaudit.batched(train)`, with one canary",
        "canaries": "how many: a fair coin puts each one in or leaves it out",
        "trainings": "at most so many; the evidence of several is multiplied, and the audit stops when the claim is "
        "refuted",
        "steps": "audits the claim of one *step*: coins and scores have a row for each of so many steps",
        "compose": "the steps that are composed to a statement on the run; None: `steps`",
        "sample_rate": "the probability with which `train` lets a canary that is in join a step",
        "confidence": "of the bound and of a refutation",
        "seed": "of coins and noise, with the source and parameters of `train`",
        "inserted": "what the canaries are, in words for the report",
        "not_tested": "what this audit does not look at, in words for the report",
        "exact": "whether scores that take two values and tell every coin are meant; else they are refused",
        "underpowered": "whether the bound is wanted though not even perfect scores could refute the claim",
        "folder": "where each training is kept as it is done",
        "resume": "whether trainings that are in `folder` are not run again; the result is the same",
        "progress": "a function that hears of each training",
        "n_jobs": "workers, as joblib counts them; they change no result",
    },
    "audit_scores": CLAIMED
    | {
        "in_scores": "scores of members, higher where the attack believes in membership; of several trainings a list "
        "of them",
        "out_scores": "scores of those that were left out",
        "design": "how the scores came about: `ManyRun()`, `OneRun()`, `FewRuns()` or `Steps()`, each with options of "
        "its own",
        "counts": "in place of scores: the `AttackCounts` of a rule that was fixed before",
        "confidence": "of each bound",
        "methods": 'names of methods, or `"all"`; None: the certified ones of the design',
        "interval": '`"lower"`, `"upper"` or `"two-sided"`; an upper end is about this attack, never about '
        "the mechanism",
        "seed": "draws the parts of scores that choose a threshold, and the order of ties",
        "options": "none: those of a design are refused with the place where they belong",
    },
    "bracket": {
        "mechanism": "a function `f(data, rng, ...)` whose source can be read, an entry of the catalogue, or its name",
        "claim": 'a claim, an epsilon, or a formula in the parameters, such as `"2*eps"`',
        "pair": "two datasets whose loss is enclosed, and audited; None: the worst that a search finds",
        "adjacency": 'how vectors of query answers differ: `"all-differ"`, `"one-differs"`, `"monotone"`, or one way, '
        '`"up"` or `"down"`',
        "domain": "all datasets, for code of finite randomness: it is replayed on every choice",
        "neighbours": 'the pairs of `domain` that are neighbours, or `"all"`',
        "most_paths": "the most runs of a replay",
        "parameters": "keywords of the function",
        "answers": "how many query answers the search for the worst pair takes",
        "runs": "of the audit from below; 0: none",
        "upper": "upper bounds known from elsewhere, taken at their word",
        "max_time_s": "seconds for all of it; what was not done by then is given as a reason",
    },
    "sweep": {
        "mechanisms": "names of the catalogue, or what `dpaudit.audit` takes, one or a list",
        "parameters": "lists of values of their keywords, all combined, or a list of combinations",
        "pair": "two datasets, a function of the point's parameters, or a mapping with one for each mechanism",
        "pairs": "a list of such: an axis",
        "claim": 'a claim, an epsilon, a formula such as `"2*eps"`, a function of the parameters, or a mapping with '
        "one for each mechanism; None: that of the entry",
        "claims": "a list of such: an axis",
        "runs": "executions for each point; a list is an axis",
        "certifiers": "names of certifiers, an axis; None: the one that suits the claim",
        "seeds": "repetitions on independent runs, an axis",
        "confidence": "of each point for itself",
        "prove": "whether every question is bounded from above, too",
        "record": "a function that is given each result before the next point begins",
        "progress": "a function that hears of each row, or as in `dpaudit.audit`",
    },
    "search_pairs": {
        "mechanism": "what `dpaudit.audit` takes",
        "generate": "a function of a generator `rng`, an iterable of pairs, or with `bounds` a function of its "
        "keywords",
        "claim": CLAIMED["claim"],
        "bounds": "what the keywords of `generate` are moved within: `(low, high)`, a `range`, or a list of choices",
        "runs": "executions in all",
        "tries": "the most pairs that are tried, with equal runs",
        "share": "the part of `runs` that tries take together",
        "finalists": "how many of the best the audit at the end compares",
    },
}

SETTINGS: dict[str, str] = {
    "runs": "executions to spend on each audit",
    "confidence": "of all audits of a command together",
    "seed": "of all randomness",
    "backend": "dask, ray or spark, or a joblib backend",
    "scheduler": "the address of the cluster of that backend",
    "jobs": "workers; -1 for all processors",
    "report": "the folder that reports are written into",
    "ledger": "the file that records every result",
    "accepted": "the file of accepted findings",
}

COMMON: dict[str, str] = {
    "form": "the form of the claim",
    "relation": "how neighbours differ; null: none stated",
    "outer": "whether f is a function whose points bound it from below",
    "kind": "which kind of counts these are",
}

RESULT: Meanings = {
    "StoredResult": {
        "schema": "the format; another version is refused",
        "spec": "the whole question",
        "verdict": "follows from the certificate, and is refused where it does not",
        "witness": "what was frozen before the runs that certify",
        "evidence": "the counts of those runs: the certificate is computed from them alone",
        "certificate": "what the counts prove, at the stated confidence",
        "cross_check": "the older two-interval bound, by statsmodels; looser, and shares no code",
        "others": "further witnesses, where `certify_pairs` is above 1",
        "blocks": "of an anytime audit: each bet and the counts of its runs",
        "representation": "the finding on floating-point bits, where it was asked for",
        "health": "the checks of the experiment itself",
        "controls": "what became of the spiked controls",
        "model_based": "of a GaussianDP claim: what the bound would mean under a model; decides nothing",
        "runs_used": "every execution, search included",
        "explored": "pairs and features that search looked at or left out",
        "ceiling": "what all hits on one side would have certified",
        "upper": "an upper bound known from elsewhere",
        "reproducible": "whether the same spec and seed give the same counts",
        "provenance": "all that may differ between two equal audits",
        "histogram": "both output distributions, from search runs",
        "trail": "the counts after growing parts of the certifying runs; only the last is certified",
        "endings": "how search runs ended where some gave no value; to look at, never evidence",
        "adjacency": "for each pair, what shows that its datasets count as neighbours: records, rows (of a frame or of "
        "columns), entries (of a dictionary) or users that were compared, answers within the stated sensitivity, or "
        "any two values under the local relation; null where that is taken on trust",
        "unseen": "entries of one output that were not looked at, the most of any output that search held",
        "unpaired": "entries of one output that were looked at alone and in sums only, the most of any output",
        "unread": "parts in which outputs differ and that no event was looked for in, in words; left out where none do",
        "milestones": "of an audit with a deadline: the numbers of certifying runs at which it could have ended",
        "typical": "outputs of search runs, where a claim is refuted; to look at, never evidence",
        "plain": "the best event that people can read, beside a witness that they cannot: counts of the same runs",
        "units": "the second bound of a refutation whose runs may share noise by calls or processes; left out where "
        "the unit is the run",
        "diagnosis": "the kind of mistake that the evidence of a refutation fits; left out where none does",
    },
    "StoredSpec": {
        "name": "of the audit",
        "claim": "what is promised",
        "mechanism": "what was run",
        "pairs": "the adjacent datasets",
        "runs": "the most executions in all",
        "confidence": "of the verdict; in a suite, this audit's share",
        "seed": "of all randomness",
        "search_share": "the part of the runs that looks for the event",
        "shard_runs": "runs of one shard, which has a random stream of its own",
        "stopping": "whether it may stop early",
        "selector": "how search chose the event",
        "certifier": "how the bound is computed; chosen before the first run",
        "sequential_share": "anytime: part of the error probability for the bets",
        "certify_pairs": "how many pairs are certified",
        "representation": "whether the bits of outputs are looked at too",
        "detect": "the power that was demanded",
        "controls": "repeats of each spiked control",
        "run_timeout_s": "seconds after which a run counts as hanging",
        "hash": "digest of all the other keys",
    },
    "StoredMechanism": {
        "digest": "of the source code",
        "takes_rng": "whether it draws from the auditor's generator",
        "name": "as reports call it",
        "kind": "how it is run",
        "reference": "the name to import it by; null where it has none",
        "parameters": "its keywords",
    },
    "StoredData": {
        "shown": "what a small dataset prints that has no plain value",
        "value": "null where the dataset is large or not plain",
        "digest": "of its content",
    },
    "StoredPair": {
        "distance": "how many steps apart the two are",
        "name": "as reports call it",
        "first": "one dataset",
        "second": "the other",
        "sensitivity": "of datasets that are answers of queries: how far one step may move each of them",
        "user": "whose record each one is: the column, key, attribute, field or position that says it",
    },
    "StoredWitness": {
        "pair": "its place among the pairs, from 0",
        "event_in_words": "for people; `event` decides",
        "p_side": "the dataset on which search took the event to be likelier",
        "score": "of search, in units of its own: never a bound",
        "tangent": "the half-plane of the claim that the counts are tested against",
        "event": "the set of outputs, or the partition",
        "selector": "what proposed it",
    },
    "StoredCoinFlip": {
        "hits_p": "runs on the likelier side whose output is in the event",
        "hits_q": "the same on the other side",
        "runs_p": "all runs on the likelier side",
        "runs_q": "all runs on the other side",
    },
    "StoredCertificate": {
        "lower": "the bound, in the claim's own parameter",
        "epsilon_lower": "the bound on epsilon at `delta`; null for a Rényi bound",
        "p_value": "the claim is refuted where it is at most 1 - `confidence`",
        "delta": "frozen with the event",
        "method": "how the bound was computed",
        "confidence": "of the bound",
    },
    "StoredProvenance": {
        "commit": "of the repository, `-dirty` where its files had changed",
        "reasons": "why a pair is worth looking at, by its name, where that is known",
        "exceptions": "the message and line of the first exception of each type, where some were raised",
        "chosen_runs": "the runs that a call which named neither runs nor a time chose, to last about a minute",
        "assumed": "the relation under which pairs were made of `data`, where none was stated",
        "interruptions": "how often the audit was stopped and resumed",
        "parts": "in how many parts its certifying runs were counted by hand, where they were",
        "hosts": "the machines of workers that dpaudit has not started",
        "digest": "the SHA-256 of all else in the file: what was changed by mistake is noticed",
        "command": "the command that repeats it",
        "record": "what only people know: owner, source of the claim, unit of privacy, releases, data, reviewer",
        "excerpt": "of the source of the mechanism",
        "source": "the spec file",
        "file": "of the mechanism",
        "wall_s": "seconds that passed",
        "cpu_s": "seconds of all processors, fresh processes apart",
        "version": "of dpaudit",
        "python": "version",
        "numpy": "version",
        "scipy": "version",
        "joblib": "version",
        "statsmodels": "version",
        "scikit-learn": "version",
        "platform": "operating system and processor",
        "started": "when, in UTC",
        "n_jobs": "workers",
        "backend": "what ran the workers",
        "isolation": "`process` where no code of the mechanism ran in what counted, `none` where it may have",
        "task_runs": "runs of a task, where they were set",
        "max_time_s": "seconds to spend at the most, where they were given",
        "line": "of the mechanism in its file",
    },
    "HostRuns": {
        "host": "its name",
        "workers": "of a cluster; or parts that were counted there by hand",
        "runs": "that were made there, of search too where it is a cluster",
    },
    "StoredUnits": {
        "processes": "that made the certifying runs; 0 where the unit is the call",
        "again": "the findings that refute, on one run in each call or process; empty where there were none",
    },
    "StoredMilestones": {
        "ends": "numbers of certifying runs, growing",
        "last": "the part of the error probability that the last of them has; the others share the rest",
    },
    "StoredHealth": {
        "notes": "what was seen and is no alarm",
        "checks": "each of them, with its p-value",
    },
    "StoredSets": {
        "feature": "the number that is computed from an output",
        "intervals": "of that number",
        "tokens": "values that are no numbers",
        "bins": "of a partition, the most telling first",
    },
    "StoredEvent": {
        "feature": "the number that is computed from an output",
        "intervals": "of that number",
        "tokens": "values that are no numbers",
    },
    "StoredBin": {
        "intervals": "of the feature",
        "tokens": "values that are no numbers",
    },
    "StoredToken": {
        "label": "for people",
        "code": "what decides",
    },
    "StoredTangent": {
        "ratio": "the slope, e^epsilon",
        "offset": "the delta",
    },
    **{
        f"Stored{form.form}": {
            each.name: "what is promised" if each.name == form.parameter else each.metadata["said"]
            for each in form.spec_fields().values()
        }
        for form in FORMS
    },
    "StoredBinned": {
        "counts_p": "runs in each bin, of the likelier side",
        "counts_q": "the same of the other side",
        "runs_p": "all runs on the likelier side",
        "runs_q": "all runs on the other side",
    },
    "StoredCrossCheck": {
        "method": "what it is",
        "epsilon_lower": "its bound, at the delta of the certificate",
    },
    "StoredFinding": {
        "witness": "frozen before its runs",
        "evidence": "its counts",
        "certificate": "what they prove",
    },
    "StoredBlock": {
        "event": "that was bet on",
        "event_in_words": "for people",
        "p_side": "the dataset that was bet to make it likelier",
        "p": "the rate bet on, on that side",
        "q": "the rate bet on, on the other",
        "delta": "the offset of the half-plane bet against",
        "evidence": "the counts of the block",
    },
    "StoredCheck": {
        "name": "what it looks for",
        "log10_p": "of its p-value, base 10",
        "level": "the p-value at which it alarms",
        "finding": "what it saw, in words",
        "cure": "what to do about an alarm",
    },
    "StoredControl": {
        "mass": "probability of the leak on one dataset",
        "rarer": "and on the other",
        "loss": "the least parameter that allows it",
        "caught": "repeats that refuted the claim",
        "repeats": "repeats that were made",
        "needed": "repeats that must refute it",
        "place": "where in an output the leak stands",
    },
    "StoredModelBased": {
        "model": "the assumption",
        "delta": "where epsilon is told",
        "epsilon": "under that assumption",
    },
    "StoredExplored": {
        "what": "a pair, a feature, ...",
        "name": "which one",
        "status": "what became of it",
        "score": "of search",
        "runs": "spent on it",
    },
    "StoredUpper": {
        "epsilon_upper": "the loss is at most this",
        "epsilon_lower": "and at least this, where that is known too",
        "delta": "at this delta",
        "label": "what kind of statement it is",
        "scope": "which inputs it holds for",
        "arithmetic": "what it was computed with",
        "source": "where it comes from",
    },
    "StoredEnding": {
        "what": '"a value", "None", "nan", "timed out" or "raised" and the type of an exception',
        "runs": "how many runs ended so, on the first and on the second dataset",
        "hits": "how many of these the event of the witness holds",
    },
    "StoredTypical": {
        "inside": "outputs inside the event, of the first and of the second dataset; others where it holds none",
        "hits": "how many search runs the event holds",
        "runs": "how many search runs were looked at",
        "constant": "the one output that all runs gave; null where they gave several",
        "places": "the places of outputs that the event reads, and those in which the datasets differ most",
    },
    "StoredPlaceValues": {
        "name": "of the place",
        "named": "whether the event reads it",
        "numbers": "how many runs have a number there, on the first and on the second dataset",
        "different": "how many different numbers",
        "levels": "the least number, the quantiles at 5, 25, 50, 75 and 95 %, and the greatest",
    },
    "StoredDiagnosis": {
        "kind": "of mistake, in a word or two",
        "sentence": "what shows it",
        "look_at": "where to look",
        "usual_mend": "what usually mends it",
    },
    "StoredHistogram": {
        "feature": "what is counted",
        "edges": "of the bins (low, high]",
        "values": "instead of bins, where there are few",
        "first": "counts of the first dataset, one below and one above the edges",
        "second": "the same of the second",
        "labels": "values that are no numbers",
        "tokens_first": "how often they came, on the first dataset",
        "tokens_second": "on the second",
        "runs_first": "all runs looked at",
        "runs_second": "all runs looked at",
    },
}

SUITE: Meanings = {
    "StoredSuite": {
        "schema": "the format; another version is refused",
        "name": "what the page calls the suite; left out where no spec names it",
        "product": "what its audits are about; left out where no spec says it",
        "version": "of the product; left out where no spec says it",
        "confidence": "of all audits together",
        "exit_code": "the worst of them",
        "entries": "the audits, in their order",
        "reviewed": "every entry of the file of accepted findings",
    },
    "StoredEntry": {
        "name": "of the audit",
        "expect": "the verdict that its author knows to be right",
        "as_expected": "whether it is that one, or an accepted finding",
        "exit_code": "of this audit",
        "error": "why there is no result, or what went wrong beside it",
        "p_value_holm": "adjusted for all audits; null without a result",
        "result": "whole, as in a file of its own; null where there is none",
        "accepted": "the acceptance that covers it",
        "source": "the spec file it stands in, where there is one",
    },
    "StoredAcceptance": {
        "fingerprint": "of the finding: 16 hexadecimal digits",
        "finding": "for people",
        "reason": "why it is accepted",
        "accepted": "the day it was reviewed",
        "until": "its last day",
    },
    "StoredReviewed": {
        "acceptance": "as the file has it",
        "expired": "whether its last day was over; that fails the suite",
        "matched": "whether a finding had its fingerprint",
    },
}
