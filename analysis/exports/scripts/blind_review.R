# The planned analysis of a blind review, from the files of its package alone.
#
#     Rscript analysis.R [FOLDER] [ORIGIN] [NUMBERS.csv]
#
# It needs base R and nothing else. It reads trials, participants and conditions.csv and definition.json,
# prints the main tables, and writes every number with all its digits to a third argument. "" stands for an
# argument left out.
#
# Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
# them. Real solutions of tasks are compared by the share that leads accept, people's with each explainer's
# and with all of them; a decision after the budget is a rejection. Hits are right answers accepted, false
# acceptances are wrong ones, the source's errors and lures together; "cannot say" is in neither. The
# intervals of a difference are drawn at random here, with a seed of this script: leads and tasks with
# replacement, each draw divided by its own two-way clustered error (pigeonhole bootstrap-t). The verdict:
# worse or superior if the 95 % interval lies wholly beyond the declared margin, equivalent if the 90 %
# interval lies within it.

NARROW <- 0.90
DRAWS <- 10000
CHUNK <- 500
SEED <- 1
PEOPLE_MIN <- 12
TASKS_MIN <- 30
NOT_RE_RUN <- c(
  "all of the stage in which people solve",
  "intervals and tests of shares, of acc_L, of d' and of usefulness, which are drawn at random",
  "other budgets, the first run alone, order, explainers against one another, and the mixed model",
  "regions alone, labels, suspicion, audits, times and the quality of the data"
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

# What the study's definition says, or leaves at its default. The file has one value per line, and a table
# ends at a bracket as far to the left as the line that opens it.
lines <- readLines(file.path(folder, "definition.json"), encoding = "UTF-8")
lines <- lines[-seq_len(match(' "design": {', lines, nomatch = length(lines)))]
lines <- lines[seq_len(grep("^ \\}", c(lines, " }"))[1] - 1)]
told <- function(key, otherwise) {
  line <- grep(paste0('^  "', key, '": '), lines, value = TRUE)
  if (length(line)) gsub('"|,$', "", sub("^[^:]*: ", "", line[1])) else otherwise
}
if (told("role", "review") == "solve") {
  stop("This package is of the stage in which people solve, which has no planned test.")
}
budget_ms <- as.numeric(told("budget_ms", 3000))
margin <- as.numeric(told("margin", 0.1))

conditions <- cells("conditions")
source_name <- conditions$condition[conditions$role == "source"]
methods <- conditions$condition[conditions$role != "source"]
if (length(source_name) != 1 || !length(methods)) {
  stop("A review compares one source of people with at least one other; this package has no such.")
}
# People first, then the model with all explainers if it has several, then each of them.
groups <- c(setNames(list(source_name), source_name), if (length(methods) > 1) list(all_methods = methods),
            setNames(as.list(methods), methods))

# One row per solution that was judged; numbers 1 or 0, `right` empty if its item has no truth.
rows <- cells("trials")
rows <- rows[rows$session %in% kept & rows$kind == "review" & rows$accepted != "", ]
rows$use[rows$use == ""] <- "task"
rows$says <- rows$answer != "cannot_say"
rows$explained <- rows$explained == "1"
rows$right <- as.numeric(rows$answer_right)
rows$accepted <- as.numeric(rows$accepted)
rt_ms <- as.numeric(rows$rt_ms)
rows$in_time <- rows$accepted * (!is.na(rt_ms) & rt_ms > 0 & rt_ms <= budget_ms)
answered <- rows$use %in% c("task", "lure") & rows$says & !is.na(rows$right)

mean_of <- function(x) if (length(x)) mean(x) else NA_real_
wilson <- function(x) {
  n <- length(x)
  z <- qnorm((1 + LEVEL) / 2)
  centre <- (mean(x) + z^2 / (2 * n)) / (1 + z^2 / n)
  half <- z / (1 + z^2 / n) * sqrt(mean(x) * (1 - mean(x)) / n + z^2 / (4 * n^2))
  c(max(0, centre - half), min(1, centre + half))
}
# Of the share of x less that of y, as if all were independent.
newcombe <- function(x, y) {
  of_x <- wilson(x)
  of_y <- wilson(y)
  mean(x) - mean(y) + c(-1, 1) * sqrt(c(mean(x) - of_x[1], of_x[2] - mean(x))^2 +
                                        c(of_y[2] - mean(y), mean(y) - of_y[1])^2)
}

# The share of the first table less that of the second, and its two-way clustered error, in each draw. A table
# is the accepted and all reviews by lead and task; `leads` and `tasks` say in rows how often each was drawn.
contrast <- function(tables, leads, tasks) {
  value <- within <- total <- 0
  of_leads <- 0 * leads
  of_tasks <- 0 * tasks
  for (at in 1:2) {
    sign <- c(1, -1)[at]
    yes <- tables[[at]]$yes
    every <- tables[[at]]$every
    yes_of_leads <- tasks %*% t(yes)
    all_of_leads <- tasks %*% t(every)
    count <- rowSums(leads * yes_of_leads)
    n <- rowSums(leads * all_of_leads)
    by_yes <- sign / n
    by_all <- -sign * count / n^2
    value <- value + sign * count / n
    of_leads <- of_leads + by_yes * yes_of_leads + by_all * all_of_leads
    of_tasks <- of_tasks + by_yes * (leads %*% yes) + by_all * (leads %*% every)
    within <- within + (by_yes^2 + 2 * by_yes * by_all) * count + by_all^2 * n
    total <- total + n
  }
  factor_of <- function(n) n / pmax(n - 1, 1)
  of_lead <- rowSums(leads * of_leads^2) * factor_of(rowSums(leads))
  of_task <- rowSums(tasks * of_tasks^2) * factor_of(rowSums(tasks))
  list(value = value, se = sqrt(pmax(of_lead + of_task - within * factor_of(total), of_lead, of_task)))
}

# Accepted of mine less accepted of people's, with both intervals.
difference <- function(mine, people) {
  leads <- unique(c(mine$participant, people$participant))
  tasks <- unique(c(mine$item, people$item))
  tables <- lapply(list(mine, people), function(part) {
    by <- list(factor(part$participant, leads), factor(part$item, tasks))
    list(yes = unclass(xtabs(part$accepted ~ by[[1]] + by[[2]])), every = unclass(table(by[[1]], by[[2]])))
  })
  shape <- c(length(leads), length(tasks))
  all <- contrast(tables, matrix(1, 1, shape[1]), matrix(1, 1, shape[2]))
  made <- list(estimate = all$value, se = all$se, people = shape[1], items = shape[2])
  if (min(shape) < 2 || !(all$se > 1e-9)) return(made)
  set.seed(SEED)
  t <- unlist(lapply(seq_len(DRAWS / CHUNK), function(at) {
    copies <- lapply(shape, function(n) t(rmultinom(CHUNK, n, rep(1, n))))
    drawn <- contrast(tables, copies[[1]], copies[[2]])
    ((drawn$value - all$value) / drawn$se)[is.finite(drawn$value) & drawn$se > 1e-9]
  }))
  if (length(t) < 0.9 * DRAWS) return(made)
  ends <- function(level) all$value - quantile(t, (1 + c(level, -level)) / 2, names = FALSE) * all$se
  limits <- pmin(1, pmax(-1, c(ends(LEVEL), ends(NARROW))))
  c(made, setNames(as.list(limits), c("low", "high", "narrow_low", "narrow_high")))
}
verdict <- function(made) {
  if (is.null(made$low) || made$people < PEOPLE_MIN || made$items < TASKS_MIN) {
    return(paste0("no verdict, which needs ", PEOPLE_MIN, " leads, ", TASKS_MIN, " tasks and an interval"))
  }
  if (made$high < -margin) return("worse")
  if (made$low > margin) return("superior")
  if (-margin < made$narrow_low && made$narrow_high < margin) "equivalent" else "inconclusive"
}
# Hits and false acceptances; d' and criterion with half added to the accepted and one to all.
shares <- function(yes, right, use) {
  z <- sapply(list(yes[right], yes[!right]), function(x) {
    if (length(x)) qnorm((sum(x) + 0.5) / (length(x) + 1)) else NA_real_
  })
  list(hits = mean_of(yes[right]), false = mean_of(yes[!right]),
       errors = mean_of(yes[!right & use == "task"]), lures = mean_of(yes[!right & use == "lure"]),
       d_prime = z[1] - z[2], criterion = -(z[1] + z[2]) / 2)
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

verdicts <- character(0)
real <- lapply(groups, function(names) rows[rows$condition %in% names & rows$use == "task", ])
people <- real[[1]]
for (name in names(groups)) {
  mine <- real[[name]]
  add("acceptance", name, reviews = nrow(mine), cannot_say = sum(!mine$says),
      cannot_say_accepted = sum(mine$accepted[!mine$says]))
  if (nrow(mine)) {
    naive <- wilson(mine$accepted)
    add("acceptance", name, people = length(unique(mine$participant)), items = length(unique(mine$item)),
        accepted = mean(mine$accepted), naive_low = naive[1], naive_high = naive[2],
        in_time = mean(mine$in_time), right = mean(mine$right %in% 1))
  }
  if (name != source_name && nrow(mine) && nrow(people)) {
    made_here <- difference(mine, people)
    verdicts[name] <- verdict(made_here)
    naive <- newcombe(mine$accepted, people$accepted)
    both <- c(mean(mine$accepted), mean(people$accepted))
    acc <- if (all(both > 0)) both[1] / both[2]
    do.call(add, c("difference", name, made_here, naive_low = naive[1], naive_high = naive[2], acc_L = acc))
  }
  for (limit in c("any time", "in budget")) {
    column <- if (limit == "any time") "accepted" else "in_time"
    parts <- lapply(c(without = FALSE, with = TRUE), function(explained) {
      part <- rows[answered & rows$condition %in% groups[[name]] & rows$explained == explained, ]
      shares(part[[column]], part$right == 1, part$use)
    })
    for (word in names(parts)) {
      do.call(add, c("signal", paste0(name, ", ", word, " explanations, ", limit), parts[[word]]))
    }
    hits <- parts$with$hits - parts$without$hits
    false <- parts$with$false - parts$without$false
    shown <- mean_of(mine[[column]][mine$explained]) - mean_of(mine[[column]][!mine$explained])
    add("usefulness", paste0(name, ", ", limit), gain_hits = hits, gain_false = false,
        usefulness = hits - false, paper_difference = shown)
  }
}

if (origin == "simulated") cat("Computational observers, not people.\n\n")
ends <- function(part, name, what = "") {
  told <- sapply(paste0(what, c("low", "high")), function(measure) show(part, name, measure, 1, 100))
  paste0("[", told[1], ", ", told[2], "]")
}
shown <- do.call(rbind, lapply(names(groups), function(name) {
  get <- function(measure, digits = 1, scale = 100) show("acceptance", name, measure, digits, scale)
  data.frame(name, get("reviews", 0, 1), get("people", 0, 1), get("items", 0, 1), get("accepted"),
             ends("acceptance", name, "naive_"), get("in_time"), get("cannot_say", 0, 1), get("right"))
}))
names(shown) <- c("solutions of", "reviews", "leads", "tasks", "accepted %", "naive 95 %",
                  paste0("in ", budget_ms / 1000, " s %"), "cannot say", "true answers %")
options(width = 200)
print(shown, row.names = FALSE, right = FALSE)
cat("\nLess ", source_name, ", points, margin ", 100 * margin, ":\n", sep = "")
for (name in names(verdicts)) {
  cat("  ", name, ": ", show("difference", name, "estimate", 1, 100), ", 95 % ", ends("difference", name),
      ", 90 % ", ends("difference", name, "narrow_"), ": ", verdicts[name], "; acc_L ",
      show("difference", name, "acc_L", 2), "\n", sep = "")
}
cat("\nRight and wrong answers, % accepted:\n")
for (key in unique(made$name[made$analysis == "signal"])) {
  cat("  ", key, ": hits ", show("signal", key, "hits", 1, 100), ", false ",
      show("signal", key, "false", 1, 100), ", d' ", show("signal", key, "d_prime", 2), ", criterion ",
      show("signal", key, "criterion", 2), "\n", sep = "")
}
cat("\nWith explanations less without, points:\n")
for (key in unique(made$name[made$analysis == "usefulness"])) {
  cat("  ", key, ": usefulness ", show("usefulness", key, "usefulness", 1, 100), ", paper_difference ",
      show("usefulness", key, "paper_difference", 1, 100), "\n", sep = "")
}
cat("\nNot re-run here, see the report: ", paste(NOT_RE_RUN, collapse = "; "), ".\n", sep = "")
if (nzchar(out)) {
  made <- made[!is.na(made$value), ]
  made$value <- formatC(made$value, digits = 17, format = "g")
  write.csv(made, out, row.names = FALSE)
}
