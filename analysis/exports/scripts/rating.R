# The planned analysis of ratings of explanations, from the files of its package alone.
#
#     Rscript analysis.R [FOLDER] [ORIGIN] [NUMBERS.csv]
#
# It needs base R and nothing else. It reads trials, participants, stimuli and conditions.csv and
# definition.json, prints the main table and the tests, and writes every number with all its digits to a third
# argument. "" stands for an argument left out.
#
# Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
# them; agreement of all raters is of the screened ones too. Points of reversed questions are turned round
# first, so that high is good. Ratings of anchors are left out. A picture that is also another condition's was
# rated once and counts for both, but once in the agreement. Means, and differences on the pictures that both
# conditions have, each picture counting alike, have two-way clustered errors: people and pictures are both as
# drawn at random, Student's t with the smaller number of clusters less 1. Tests are two-sided, with Holm's
# correction over the pairs of a question; saliency against concepts: over the questions.

SCALE <- 1:5
STANDARD <- c(q1 = FALSE, q2 = FALSE, q3 = FALSE, q4 = FALSE, q5 = TRUE, q6 = FALSE)
NOT_RE_RUN <- c(
  "the cumulative logit mixed model",
  "means by method, model, dataset and form",
  "intervals of alpha and one rater against the usual answer, which are drawn at random",
  "agreement with oneself, single raters, raters per explanation",
  "correlations with automatic metrics, and the quality of the data"
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
people <- people[people$origin == origin & people$arrival != "unverified", ]
kept <- people$session[people$status == "passed" & people$excluded_by_hand != "1"]
conditions <- cells("conditions")
stimuli <- cells("stimuli")
trials <- cells("trials")
trials <- trials[trials$session %in% people$session & trials$scored_index != "" & trials$anchor != "1" &
                   startsWith(trials$response, "{"), ]

# Whether low is good, of each question that was asked, by the study's definition. The file has one value per
# line, and a table or list ends at a bracket as far to the left as the line that opens it.
lines <- readLines(file.path(folder, "definition.json"), encoding = "UTF-8")
inside <- function(lines, opening, closing) {
  at <- match(opening, lines)
  if (is.na(at)) return(character(0))
  rest <- lines[-seq_len(at)]
  rest[seq_len(grep(closing, rest)[1] - 1)]
}
design <- inside(lines, ' "design": {', "^ \\}")
text_of <- function(lines) sub('.*"([^"]*)",?$', "\\1", lines)
asked <- text_of(inside(design, '  "asked": [', "^  \\]"))
if (!length(asked)) asked <- names(STANDARD)
wording <- inside(design, '  "wording": [', "^  \\]")
row <- cumsum(grepl("^   \\{", wording))
is_id <- grepl('^    "id": ', wording)
worded <- setNames(row[is_id] %in% row[grepl('^    "reverse": true', wording)], text_of(wording[is_id]))
turned <- c(worded, STANDARD[setdiff(names(STANDARD), names(worded))])[asked]

# One row per single rating, without anchors: `asked` as it was chosen, `value` with high as good.
answers <- regmatches(trials$response, gregexpr('"[a-z0-9_]+":[0-9]+', trials$response))
at <- rep(seq_len(nrow(trials)), lengths(answers))
rows <- data.frame(trials[at, c("participant", "session", "condition", "item")],
                   question = sub('"([a-z0-9_]+)":.*', "\\1", unlist(answers)),
                   asked = as.numeric(sub(".*:", "", unlist(answers))))
rows$value <- ifelse(turned[rows$question] %in% TRUE, 6 - rows$asked, rows$asked)
rows$is_shared <- rep(FALSE, nrow(rows))
everybody <- rows
rows <- rows[rows$session %in% kept, ]

# A picture that is another condition's too stands once more, under that condition.
twins <- stimuli[stimuli$rated_as != "", c("item", "condition", "rated_as")]
twins <- twins[!duplicated(twins[c("item", "condition")], fromLast = TRUE), ]
copies <- merge(rows, setNames(twins, c("item", "twin", "condition")), by = c("item", "condition"))
copies$condition <- copies$twin
copies$is_shared <- rep(TRUE, nrow(copies))
standing <- rbind(rows, copies[names(rows)])

# Error, p and interval of an estimate, to whose deviation each row adds its part.
clustered <- function(estimate, parts, rows) {
  people <- length(unique(rows$participant))
  pictures <- length(unique(rows$item))
  told <- list(estimate = estimate, people = people, p = NA_real_, low = NA_real_, high = NA_real_)
  if (min(people, pictures) < 2) return(told)
  variance <- function(cluster) {
    sums <- tapply(parts, cluster, sum)
    sum(sums^2) * length(sums) / max(length(sums) - 1, 1)
  }
  of_people <- variance(rows$participant)
  of_items <- variance(rows$item)
  of_both <- variance(paste(rows$participant, rows$item, sep = "\r"))
  se <- sqrt(max(of_people + of_items - of_both, of_people, of_items))
  if (se > 1e-12 * max(1, abs(estimate))) {
    df <- min(people, pictures) - 1
    half <- qt((1 + LEVEL) / 2, df) * se
    told[c("p", "low", "high")] <- c(2 * pt(-abs(estimate) / se, df), estimate - half, estimate + half)
  }
  told
}
# First less second on the pictures that both have; a group's ratings of a picture are averaged.
difference <- function(first, second) {
  shared <- intersect(first$item, second$item)
  if (!length(shared)) return(list(pictures = 0))
  both <- rbind(first[first$item %in% shared, ], second[second$item %in% shared, ])
  sign <- rep(c(1, -1), c(sum(first$item %in% shared), sum(second$item %in% shared)))
  weight <- 1 / length(shared) / ave(rep(1, nrow(both)), both$item, sign, FUN = sum)
  means <- ave(weight * both$value, sign, FUN = sum)
  c(pictures = length(shared),
    clustered(sum(sign * weight * both$value), sign * weight * (both$value - means), both))
}
# Krippendorff's ordinal alpha of one question, over explanations with two raters or more.
alpha <- function(rows) {
  counts <- table(paste(rows$item, rows$condition, sep = "\r"), factor(rows$asked, SCALE))
  counts <- unclass(counts)[rowSums(counts) >= 2, , drop = FALSE]
  told <- list(units = nrow(counts), ratings = sum(counts), alpha = NA_real_)
  if (!nrow(counts)) return(told)
  weighted <- counts / (rowSums(counts) - 1)
  pairs <- t(weighted) %*% counts - diag(colSums(weighted))
  totals <- rowSums(pairs)
  middle <- cumsum(totals) - totals / 2
  distance <- outer(middle, middle, "-")^2
  expected <- sum(distance * outer(totals, totals)) / (sum(totals) - 1)
  if (expected > 0) told$alpha <- 1 - sum(distance * pairs) / expected
  told
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
# The numbers of pairs by name, with Holm's correction over those that have a p.
add_pairs <- function(part, told) {
  corrected <- p.adjust(sapply(told, function(row) if (is.null(row$p)) NA_real_ else row$p), "holm")
  for (at in seq_along(told)) {
    do.call(add, c(part, names(told)[at], told[[at]], p_holm = corrected[[at]]))
  }
}

explained <- conditions[conditions$role != "baseline", ]
items <- lapply(setNames(nm = explained$condition), function(name) standing$item[standing$condition == name])
pairs <- if (length(items) > 1) combn(names(items), 2, simplify = FALSE) else list()
pairs <- Filter(function(pair) length(intersect(items[[pair[1]]], items[[pair[2]]])) > 0, pairs)
methods <- explained[explained$role != "control", ]
has_forms <- all(c("image", "concept") %in% methods$shows)
between_forms <- list()
for (question in asked) {
  given <- standing[standing$question == question, ]
  by <- lapply(setNames(nm = explained$condition), function(name) given[given$condition == name, ])
  for (name in names(by)) {
    part <- by[[name]]
    key <- paste(name, question)
    explanations <- length(unique(part$item))
    add("conditions", key, explanations = explanations, ratings = nrow(part), shared = sum(part$is_shared))
    points <- table(factor(part$asked, SCALE))
    do.call(add, c("conditions", key, setNames(as.list(points), paste0("points_", SCALE))))
    rated <- length(unique(items[[name]]))
    if (rated) add("conditions", key, missing = 1 - explanations / rated)
    if (nrow(part)) {
      told <- clustered(mean(part$value), (part$value - mean(part$value)) / nrow(part), part)
      # Of equally common points the smallest.
      values <- table(factor(part$value, SCALE))
      add("conditions", key, mean = told$estimate, low = told$low, high = told$high,
          mean_asked = mean(part$asked), mode_asked = SCALE[which.max(points)],
          mode = SCALE[which.max(values)])
    }
  }
  add_pairs("pairs", setNames(lapply(pairs, function(pair) difference(by[[pair[1]]], by[[pair[2]]])),
                              sapply(pairs, function(pair) paste0(question, " ", pair[1], " - ", pair[2]))))
  if (has_forms) {
    form <- methods$shows[match(given$condition, methods$condition)]
    between_forms[[question]] <- difference(given[form %in% "image", ], given[form %in% "concept", ])
  }
  do.call(add, c("agreement", paste("kept", question), alpha(rows[rows$question == question, ])))
  do.call(add, c("agreement", paste("all", question), alpha(everybody[everybody$question == question, ])))
}
add_pairs("forms", between_forms)

if (origin == "simulated") cat("Computational observers, not people.\n\n")
shown <- data.frame(condition = explained$label)
for (question in asked) {
  shown[[paste0(question, ": mean (mode) [95 %]")]] <- sapply(explained$condition, function(name) {
    get <- function(measure, digits = 2) show("conditions", paste(name, question), measure, digits)
    paste0(get("mean"), " (", get("mode", 0), ") [", get("low"), ", ", get("high"), "]")
  })
}
options(width = 200)
print(shown, row.names = FALSE, right = FALSE)
heads <- c(pairs = "Pairs of conditions on shared pictures", forms = "Saliency less concepts")
for (part in intersect(names(heads), made$analysis)) {
  cat("\n", heads[part], ", points, high is good:\n", sep = "")
  for (name in unique(made$name[made$analysis == part])) {
    cat("  ", name, ": ", show(part, name, "estimate", 2), " [", show(part, name, "low", 2), ", ",
        show(part, name, "high", 2), "], p = ", show(part, name, "p"), ", by Holm ",
        show(part, name, "p_holm"), "\n", sep = "")
  }
}
cat("\nKrippendorff's alpha, ordinal (kept raters, all raters):\n")
for (question in asked) {
  cat("  ", question, ": ", show("agreement", paste("kept", question), "alpha", 2), ", ",
      show("agreement", paste("all", question), "alpha", 2), "\n", sep = "")
}
cat("\nNot re-run here, see the report: ", paste(NOT_RE_RUN, collapse = "; "), ".\n", sep = "")
if (nzchar(out)) {
  made <- made[!is.na(made$value), ]
  made$value <- formatC(made$value, digits = 17, format = "g")
  write.csv(made, out, row.names = FALSE)
}
