# The planned analysis of a study of advice, from the files of its package alone.
#
#     Rscript analysis.R [FOLDER] [ORIGIN] [NUMBERS.csv]
#
# It needs base R and nothing else. It reads trials, participants, stimuli and conditions.csv, prints the main
# table and the tests, and writes every number with all its digits to a third argument. "" stands for an
# argument left out.
#
# Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
# them. A decision is right if it names what the picture shows; the gain is the second less the first decision
# on a picture. Means and contrasts have two-way clustered errors: people and pictures are both as drawn at
# random, Student's t with the smaller number of clusters less 1. A contrast is of the pictures that both
# conditions have; those of right and of wrong advice are strata, each with its share of the decisions. Tests
# are two-sided, with Holm's correction over the contrasts with a second look without advice, and over those
# with unexplained advice.

NOT_RE_RUN <- c(
  "intervals of RAIR, RSR and the other shares, and of d' and the criterion, which are drawn at random",
  "the gain by who is counted, answers to questions and the quality of the data"
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
items <- cells("stimuli")
items <- items[!duplicated(items$item), ]
trials <- cells("trials")
trials <- trials[trials$session %in% kept & trials$kind == "decide" & trials$check == "", ]
for (name in c("matches_truth", "matches_model")) trials[[name]] <- as.numeric(trials[[name]])

# One row per picture that a sitting decided about twice, its numbers 1 or 0.
first <- trials[trials$step == "first", ]
second <- trials[trials$step == "second", ]
again <- match(paste(first$session, first$item, sep = "\r"), paste(second$session, second$item, sep = "\r"))
first <- first[!is.na(again), ]
second <- second[again[!is.na(again)], ]
at <- match(first$item, items$item)
rows <- data.frame(
  participant = first$participant, condition = first$condition, item = first$item,
  initial = first$matches_truth, final = second$matches_truth,
  gain = second$matches_truth - first$matches_truth,
  advice = as.numeric(items$truth[at] == items$predicted[at]), agreed = first$matches_model,
  follows = second$matches_model, switched = as.numeric(first$response != second$response)
)

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
# The first condition less the other on the pictures that both have; a condition's decisions about a picture
# are averaged, and pictures count alike within the strata of the advice.
difference <- function(rows, name, first) {
  is_first <- rows$condition == first
  shares <- table(rows$advice) / nrow(rows)
  shared <- intersect(rows$item[is_first], rows$item[!is_first])
  in_both <- rows$item %in% shared
  rows <- rows[in_both, ]
  is_first <- is_first[in_both]
  pictures <- tapply(rows$item, factor(rows$advice, names(shares)), function(x) length(unique(x)))
  if (!nrow(rows) || anyNA(pictures)) return(list())
  counts <- ave(rep(1, nrow(rows)), rows$item, is_first, FUN = sum)
  weight <- as.numeric((shares / pictures)[as.character(rows$advice)]) / counts
  means <- ave(weight * rows[[name]], rows$advice, is_first, FUN = sum) /
    ave(weight, rows$advice, is_first, FUN = sum)
  sign <- ifelse(is_first, 1, -1)
  clustered(sum(sign * weight * rows[[name]]), sign * weight * (rows[[name]] - means), rows)
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

# Each condition with advice less the second look without, and each with an explanation less unexplained
# advice, with Holm's correction over each of the two families.
for (measure in c("gain", "final")) {
  for (other in c("baseline", "advice")) {
    left_out <- unique(c("baseline", other))
    pairs <- expand.grid(first = conditions$condition[!conditions$role %in% left_out],
                         second = conditions$condition[conditions$role == other], stringsAsFactors = FALSE)
    told <- lapply(seq_len(nrow(pairs)), function(at) {
      difference(rows[rows$condition %in% c(pairs$first[at], pairs$second[at]), ], measure, pairs$first[at])
    })
    corrected <- p.adjust(sapply(told, function(row) if (is.null(row$p)) NA_real_ else row$p), "holm")
    for (at in seq_along(told)) {
      pair <- paste0(measure, " ", pairs$first[at], " - ", pairs$second[at])
      do.call(add, c("contrasts", pair, told[[at]], p_holm = corrected[[at]]))
    }
  }
}

ends <- c("estimate", "low", "high")
for (name in conditions$condition) {
  part <- rows[rows$condition == name, ]
  add("conditions", name, n = length(unique(part$participant)), items = length(unique(part$item)))
  if (nrow(part)) {
    told <- lapply(setNames(nm = c("initial", "final", "gain")), function(measure) {
      y <- part[[measure]]
      unlist(clustered(mean(y), (y - mean(y)) / length(y), part))[ends]
    })
    # By design the advice is as often right in every session: it has no error. The difference to the better
    # of both is the smaller one, and so are its ends.
    told$over_advice <- told$final - mean(part$advice)
    told$over_better <- pmin(told$gain, told$over_advice)
    add("conditions", name, advice = mean(part$advice))
    for (measure in names(told)) {
      do.call(add, c("conditions", name, setNames(as.list(told[[measure]]), paste0(measure, "_", ends))))
    }
  }
  # On whose answers people rely: of which decisions which share.
  right <- part$advice == 1
  shares <- list(
    rair = list(right & part$initial == 0, part$follows),
    rsr = list(!right & part$initial == 1, 1 - part$switched),
    over_reliance = list(!right, part$follows),
    under_reliance = list(right, 1 - part$follows),
    to_right = list(right & part$agreed == 0, part$follows),
    to_wrong = list(!right & part$agreed == 0, part$follows),
    from_right = list(part$initial == 1, part$switched),
    from_wrong = list(part$initial == 0, part$switched),
    switched = list(part$initial >= 0, part$switched)
  )
  for (share in names(shares)) {
    chosen <- shares[[share]][[2]][shares[[share]][[1]]]
    values <- list(sum(chosen), length(chosen), if (length(chosen)) mean(chosen) else NA_real_)
    do.call(add, c("reliance", name, setNames(values, paste0(share, c("_yes", "_total", "")))))
  }
  # Following, with half added to the decisions that follow and one to all; signal: the advice is right.
  if (any(right) && any(!right)) {
    z <- sapply(list(right, !right), function(of) qnorm((sum(part$follows[of]) + 0.5) / (sum(of) + 1)))
    add("reliance", name, d_prime = z[1] - z[2], criterion = -(z[1] + z[2]) / 2)
  }
}

with_ends <- function(part, name, what) {
  told <- sapply(paste0(what, ends), function(measure) show(part, name, measure, 1, 100))
  paste0(told[1], " [", told[2], ", ", told[3], "]")
}
if (origin == "simulated") cat("Computational observers, not people.\n\n")
heads <- c(initial_ = "first %", final_ = "second %", gain_ = "gain", over_advice_ = "less advice alone",
           over_better_ = "less better of both")
shown <- data.frame(condition = conditions$label,
                    n = sapply(conditions$condition, function(name) show("conditions", name, "n", 0)))
for (what in names(heads)) {
  shown[[heads[[what]]]] <- sapply(conditions$condition, function(name) with_ends("conditions", name, what))
}
options(width = 200)
print(shown, row.names = FALSE, right = FALSE)
cat("\nPlanned contrasts, percentage points:\n")
for (pair in unique(made$name[made$analysis == "contrasts"])) {
  cat("  ", pair, ": ", with_ends("contrasts", pair, ""), ", p = ", show("contrasts", pair, "p"),
      ", by Holm ", show("contrasts", pair, "p_holm"), "\n", sep = "")
}
cat("\nReliance on advice, %:\n")
for (name in conditions$condition) {
  get <- function(measure, digits = 0, scale = 1) show("reliance", name, measure, digits, scale)
  told <- sapply(c("rair", "rsr", "over_reliance", "under_reliance"), function(what) {
    counts <- paste(get(paste0(what, "_yes")), "of", get(paste0(what, "_total")))
    paste0(what, " ", get(what, 1, 100), " (", counts, ")")
  })
  cat("  ", name, ": ", toString(told), ", d' ", get("d_prime", 2), ", criterion ", get("criterion", 2), "\n",
      sep = "")
}
cat("\nNot re-run here, see the report: ", paste(NOT_RE_RUN, collapse = "; "), ".\n", sep = "")
if (nzchar(out)) {
  made <- made[!is.na(made$value), ]
  made$value <- formatC(made$value, digits = 17, format = "g")
  write.csv(made, out, row.names = FALSE)
}
