# The planned analysis of a reverse Turing test, from the files of its package alone.
#
#     Rscript analysis.R [FOLDER] [ORIGIN] [NUMBERS.csv]
#
# It needs base R and nothing else. It reads trials, participants, stimuli and conditions.csv, prints the main
# table and the tests, and writes every number with all its digits to a third argument. "" stands for an
# argument left out.
#
# Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
# them. The unit is one score per session and condition: the share of scored test answers that are the
# model's, or the gold label, the macro F1 over the classes that this person met or gave, and the sums of
# response times. Tests against the baseline are two-sided: Mann-Whitney of different people, or Wilcoxon's
# signed ranks of the same people, exact if nothing is tied and the samples are small, with Holm's correction
# over the conditions.

ROUNDING <- 2^-46
NOT_RE_RUN <- c(
  "the mixed models of single answers and the effects of period and preceding condition",
  "people who know the task against people who do not",
  "the tests of single answers as printed in the paper",
  "chance, the learning curve, coverage, marks, elapsed time and the quality of the data"
)
LEVEL <- 0.95

here <- function() {
  file <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
  if (length(file)) dirname(normalizePath(file[1])) else "."
}
given <- function(place, otherwise) {
  words <- commandArgs(TRUE)
  if (length(words) >= place && nzchar(words[place])) words[place] else otherwise
}
folder <- given(1, here())
origin <- given(2, "")
out <- given(3, "")

# All cells as text, of the file beside this script or as Psych-DS names it in data/.
cells <- function(name) {
  plain <- file.path(folder, paste0(name, ".csv"))
  named <- list.files(file.path(folder, "data"), paste0("-", name, "_data\\.csv$"), full.names = TRUE)
  there <- c(plain[file.exists(plain)], named)
  if (!length(there)) stop(folder, ": there is no ", name, ".csv; give the folder of the package.")
  read.csv(there[1], colClasses = "character", na.strings = character(0), encoding = "UTF-8")
}

people <- cells("participants")
there <- sort(unique(people$origin))
if (!nzchar(origin)) origin <- if (length(there) == 1) there else "human"
if (!origin %in% there) stop("No session has the origin ", origin, "; there are ", toString(there), ".")
kept <- people$session[people$origin == origin & people$status == "passed" & people$excluded_by_hand != "1" &
                         people$arrival != "unverified"]
conditions <- cells("conditions")
baseline <- conditions$condition[conditions$role == "baseline"][1]
items <- cells("stimuli")
items <- items[!duplicated(items$item), ]
trials <- cells("trials")
trials <- trials[trials$session %in% kept, ]
numbers <- c("matches_model", "matches_truth", "rt_ms", "block")
trials[numbers] <- lapply(trials[numbers], as.numeric)
trials$unit <- paste(trials$session, trials$condition, sep = "\r")
tests <- trials[trials$scored_index != "" & trials$phase == "test", ]
tests$gold <- items$truth[match(tests$item, items$item)]
tests$predicted <- items$predicted[match(tests$item, items$item)]

# The mean and the sum of what is there; no number if nothing is.
mean_of <- function(x) if (all(is.na(x))) NA_real_ else mean(x, na.rm = TRUE)
sum_of <- function(x) if (all(is.na(x))) NA_real_ else sum(x, na.rm = TRUE)
has_spread <- function(x) length(x) > 0 && diff(range(x)) > ROUNDING * max(abs(x))
macro_f1 <- function(right, answered) {
  if (all(right == answered)) return(1)
  classes <- setdiff(unique(c(right, answered)), "")
  # An answer that is missing is none of the classes, so there is no F1.
  if (length(classes) < 2 || any(answered == "")) return(NA_real_)
  hits <- sapply(classes, function(class) sum(right == class & answered == class))
  named <- sapply(classes, function(class) sum(right == class) + sum(answered == class))
  mean(2 * hits / named)
}
# The ends of Student's t interval; none without spread.
student <- function(x) {
  x <- x[!is.na(x)]
  if (length(x) < 2 || !has_spread(x)) return(c(NA_real_, NA_real_))
  mean(x) + c(-1, 1) * qt((1 + LEVEL) / 2, length(x) - 1) * sd(x) / sqrt(length(x))
}

# One row per session and condition with test answers.
by_unit <- split(tests, tests$unit)
trained <- split(trials$rt_ms[trials$phase == "train"], trials$unit[trials$phase == "train"])
rows <- do.call(rbind, lapply(by_unit, function(part) data.frame(
  session = part$session[1], condition = part$condition[1], period = min(part$block),
  accuracy = mean_of(part$matches_model), truth = mean_of(part$matches_truth),
  f1 = macro_f1(part$model_label, part$response), test_s = sum_of(part$rt_ms) / 1000,
  train_s = sum_of(c(NA, trained[[part$unit[1]]])) / 1000)))

# Rank-biserial correlation and p; none without values or spread.
mann_whitney <- function(x, y) {
  both <- c(x, y)
  if (!min(length(x), length(y)) || !has_spread(both)) return(c(NA_real_, NA_real_))
  is_exact <- !anyDuplicated(both) && max(length(x), length(y)) <= 20
  told <- wilcox.test(x, y, exact = is_exact, correct = TRUE)
  c(2 * unname(told$statistic) / (length(x) * length(y)) - 1, told$p.value)
}
# The same of two values per person; pairs that are equal are left out.
signed_rank <- function(x, y) {
  change <- x - y
  change <- change[abs(change) > ROUNDING * max(abs(c(x, y)))]
  n <- length(change)
  if (!n) return(c(NA_real_, NA_real_))
  # Equal differences of shares may differ by rounding, and must tie.
  change <- sign(change) * round(abs(change) / max(abs(change)), 12)
  is_exact <- !anyDuplicated(abs(change)) && n <= 50
  p <- wilcox.test(change, exact = is_exact, correct = TRUE)$p.value
  c(4 * sum(rank(abs(change))[change > 0]) / (n * (n + 1)) - 1, min(1, p))
}

made <- data.frame(analysis = character(), name = character(), measure = character(), value = numeric())
# The dots keep R from taking n for a short form of name.
add <- function(.analysis, .name, ...) {
  values <- list(...)
  made <<- rbind(made, data.frame(analysis = .analysis, name = .name, measure = names(values),
                                  value = as.numeric(unlist(values))))
}
of <- function(analysis, name, measure) {
  value <- made$value[made$analysis == analysis & made$name == name & made$measure == measure]
  if (length(value)) value else NA_real_
}
show <- function(analysis, name, measure, digits = 3, scale = 1) {
  value <- of(analysis, name, measure)
  if (is.na(value)) "-" else formatC(scale * value, digits = digits, format = "f")
}

# Every other condition against the baseline on one measure.
compare <- function(rows, measure, part) {
  is_within <- any(duplicated(rows$session))
  of_condition <- function(name) {
    members <- rows[rows$condition == name & !is.na(rows[[measure]]), ]
    setNames(members[[measure]], members$session)
  }
  others <- setdiff(conditions$condition, baseline)
  told <- lapply(others, function(name) {
    x <- of_condition(name)
    y <- of_condition(baseline)
    if (is_within) {
      shared <- intersect(names(x), names(y))
      x <- x[shared]
      y <- y[shared]
    }
    c(length(x), length(y), if (is_within) signed_rank(x, y) else mann_whitney(x, y))
  })
  corrected <- p.adjust(sapply(told, `[`, 4), "holm")
  for (at in seq_along(others)) {
    add(part, paste(others[at], measure), n = told[[at]][1], n_baseline = told[[at]][2],
        effect = told[[at]][3], p = told[[at]][4], p_holm = corrected[at])
  }
}

with_ends <- c("", "_low", "_high")
for (name in conditions$condition) {
  members <- rows[rows$condition == name, ]
  answers <- tests[tests$condition == name, ]
  add("conditions", name, n = NROW(members))
  for (measure in c("accuracy", "truth", "f1")) {
    values <- as.list(c(mean_of(members[[measure]]), student(members[[measure]])))
    do.call(add, c("conditions", name, setNames(values, paste0(measure, with_ends))))
  }
  for (measure in c("test_s", "train_s")) {
    logs <- log(members[[measure]][!is.na(members[[measure]]) & members[[measure]] > 0])
    values <- as.list(exp(c(mean_of(logs), student(logs))))
    do.call(add, c("conditions", name, setNames(values, paste0(measure, with_ends))))
  }
  wrong <- answers[answers$gold != answers$predicted, ]
  gap <- tapply(wrong$matches_truth - wrong$matches_model, wrong$session, mean)
  if (nrow(answers)) {
    add("conditions", name, majority = max(table(answers$model_label)) / nrow(answers),
        gold = mean(answers$gold == answers$model_label))
  }
  add("belief", name, n = nrow(wrong), model = mean_of(wrong$matches_model),
      truth = mean_of(wrong$matches_truth), gap = mean_of(gap), low = student(gap)[1], high = student(gap)[2])
}
if (length(by_unit)) {
  for (measure in c("accuracy", "truth", "test_s")) compare(rows, measure, "tests")
  if (any(duplicated(rows$session))) {
    compare(rows[rows$period == ave(rows$period, rows$session, FUN = min), ], "accuracy", "first_period")
  }
}

if (origin == "simulated") cat("Computational observers, not people.\n\n")
shown <- do.call(rbind, lapply(seq_len(nrow(conditions)), function(at) {
  get <- function(measure, digits = 1, scale = 100) {
    show("conditions", conditions$condition[at], measure, digits, scale)
  }
  data.frame(condition = conditions$label[at], n = get("n", 0, 1), model = get("accuracy"),
             ends = paste0("[", get("accuracy_low"), ", ", get("accuracy_high"), "]"), f1 = get("f1", 3, 1),
             test = get("test_s", 1, 1), train = get("train_s", 1, 1), truth = get("truth"),
             majority = get("majority"), gold = get("gold"))
}))
names(shown) <- c("condition", "n", "model %", "95 %", "F1", "test s", "training s", "gold %", "frequent %",
                  "always gold %")
options(width = 200)
print(shown, row.names = FALSE, right = FALSE)
heads <- c(tests = "Against the baseline", first_period = "Only the condition that each person met first")
for (part in intersect(names(heads), made$analysis)) {
  cat("\n", heads[part], ":\n", sep = "")
  for (name in unique(made$name[made$analysis == part])) {
    cat("  ", name, ": n ", show(part, name, "n", 0), " and ", show(part, name, "n_baseline", 0),
        ", rank-biserial ", show(part, name, "effect"), ", p = ", show(part, name, "p"), ", by Holm ",
        show(part, name, "p_holm"), "\n", sep = "")
  }
}
cat("\nOn texts that the model gets wrong, % that say what it says, and the truth:\n")
for (name in conditions$condition) {
  cat("  ", name, ": ", show("belief", name, "model", 1, 100), ", ", show("belief", name, "truth", 1, 100),
      " of ", show("belief", name, "n", 0), " answers\n", sep = "")
}
cat("\nNot re-run here, see the report: ", paste(NOT_RE_RUN, collapse = "; "), ".\n", sep = "")
if (nzchar(out)) {
  made <- made[!is.na(made$value), ]
  made$value <- formatC(made$value, digits = 17, format = "g")
  write.csv(made, out, row.names = FALSE)
}
