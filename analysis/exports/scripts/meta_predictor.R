# The planned analysis of a meta-predictor study, from the files of its package alone.
#
#     Rscript analysis.R [FOLDER] [ORIGIN] [NUMBERS.csv]
#
# It needs base R and nothing else. It reads trials, participants and conditions.csv, prints table 1 and the
# tests, and writes every number with all its digits to a third argument. "" stands for an argument left out.
#
# Who counts: sessions that screening kept, that no person left out by hand, and whose platform did not deny
# them. A person's accuracy is the share of scored trials on which the answer was the model's. Utility is the
# mean accuracy of a condition over the baseline's; its interval is Fieller's with the variance of each
# condition by itself. The planned contrasts are Dunnett's, two-sided: every condition against the baseline,
# one variance pooled over all conditions unless the planned sizes differ by more than a half. With fewer than
# five people in a condition or in the baseline no interval of Utility and no p of the contrast is given.

LEVEL <- 0.95
TOGETHER <- 0.95  # of intervals that hold together: what the study's plan declares
PEOPLE_MIN <- 5
UNEVEN <- 1.5
NOT_RE_RUN <- c(
  "intervals by block and by the bootstrap, other means of Utility, and sizes of effects",
  "the key secondary contrasts of methods with the control",
  "the smallest effect that was declared",
  "the result as assigned, with people left out by hand, and blocked by plan",
  "the course of learning, automatic metrics, also beside Utility, and the quality of the data"
)

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

# The file of a table: beside this script, or as Psych-DS names it in data/.
table_file <- function(name) {
  plain <- file.path(folder, paste0(name, ".csv"))
  named <- list.files(file.path(folder, "data"), paste0("-", name, "_data\\.csv$"), full.names = TRUE)
  there <- c(plain[file.exists(plain)], named)
  if (!length(there)) stop(folder, ": there is no ", name, ".csv; give the folder of the package.")
  there[1]
}
cells <- function(name) {
  read.csv(table_file(name), colClasses = "character", na.strings = character(0), encoding = "UTF-8")
}

trials <- cells("trials")
people <- cells("participants")
conditions <- cells("conditions")
conditions$wanted <- as.numeric(conditions$wanted)
there <- sort(unique(people$origin))
if (!nzchar(origin)) origin <- if (length(there) == 1) there else "human"
if (!origin %in% there) stop("No session has the origin ", origin, "; there are ", toString(there), ".")
kept <- people[people$origin == origin & people$status == "passed" & people$excluded_by_hand != "1" &
                 people$arrival != "unverified", ]

# Only scored trials have a value here: training and checks have none.
trials$hit <- suppressWarnings(as.numeric(trials$matches_model))
scored <- trials[!is.na(trials$hit) & trials$session %in% kept$session, ]
accuracy <- tapply(scored$hit, scored$session, mean)
by_block <- tapply(scored$hit, list(scored$session, as.numeric(scored$block) + 1), mean)
condition_of <- kept$condition[match(names(accuracy), kept$session)]
groups <- lapply(conditions$condition, function(name) as.numeric(accuracy[condition_of == name]))
names(groups) <- conditions$condition
baseline <- conditions$condition[conditions$role == "baseline"][1]

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

# P(max |T_i| > limit) of comparisons with one control: correlations are products of the loadings, so that it
# is an integral over the control's deviation and the scale of the variance estimate. Simpson's rule on both.
simpson <- function(low, high, n) {
  x <- seq(low, high, length.out = n + 1)
  list(x = x, w = c(1, rep(c(4, 2), length.out = n - 1), 1) * (high - low) / n / 3)
}
tail_of <- function(limit, loadings, df) {
  z <- simpson(-9, 9, 600)
  u <- simpson(log(qchisq(1e-14, df) / df) / 2, log(qchisq(1e-14, df, lower.tail = FALSE) / df) / 2, 600)
  s <- exp(u$x)
  inside <- matrix(1, length(s), length(z$x))
  for (loading in loadings) {
    rest <- sqrt(1 - loading^2)
    edge <- matrix(limit * s / rest, length(s), length(z$x))
    centre <- matrix(loading * z$x / rest, length(s), length(z$x), byrow = TRUE)
    inside <- inside * (pnorm(edge - centre) - pnorm(-edge - centre))
  }
  sum(u$w * dchisq(df * s^2, df) * 2 * df * s^2 * ((1 - inside) %*% (z$w * dnorm(z$x))))
}
critical <- function(loadings, df) {
  uniroot(function(x) tail_of(x, loadings, df) - (1 - TOGETHER), c(0.1, 200), tol = 1e-10)$root
}
has_enough <- function(name) min(length(groups[[name]]), length(groups[[baseline]])) >= PEOPLE_MIN

for (name in names(groups)) {
  x <- groups[[name]]
  half <- if (length(x) > 1) qt((1 + LEVEL) / 2, length(x) - 1) * sd(x) / sqrt(length(x)) else NA
  add("conditions", name, n = length(x), accuracy_mean = mean(x), accuracy_low = mean(x) - half,
      accuracy_high = mean(x) + half)
  for (block in colnames(by_block)) {
    share <- mean(by_block[condition_of == name, block], na.rm = TRUE)
    base <- mean(by_block[condition_of == baseline, block], na.rm = TRUE)
    values <- list(share, share / base)
    names(values) <- paste0(c("block_", "utility_block_"), block)
    do.call(add, c(list("conditions", name), values))
  }
}

usable <- Filter(function(x) length(x) >= 2, groups)
others <- setdiff(names(usable), baseline)
if (length(usable) >= 2 && baseline %in% names(usable)) {
  # Utility with Fieller's interval: the ratios R with |a - R b| at most so many standard errors.
  y <- usable[[baseline]]
  ratios <- lapply(usable[others], function(x) {
    a <- mean(x); b <- mean(y); va <- var(x) / length(x); vb <- var(y) / length(y)
    shared <- (a / b)^2 * vb
    list(a = a, b = b, va = va, vb = vb, loading = min(sqrt(shared / (va + shared)), 0.999),
         df = (va + shared)^2 / (va^2 / (length(x) - 1) + shared^2 / (length(y) - 1)))
  })
  fieller <- function(r, times) {
    scale <- r$b^2 - times^2 * r$vb
    if (scale <= 0) return(c(NA, NA))
    root <- sqrt(max(0, (r$a * r$b)^2 - scale * (r$a^2 - times^2 * r$va)))
    (r$a * r$b + c(-root, root)) / scale
  }
  loadings <- vapply(ratios, function(r) r$loading, 0)
  for (name in others) {
    r <- ratios[[name]]
    add("utility", name, utility = r$a / r$b)
    if (has_enough(name)) {
      alone <- fieller(r, qt((1 + LEVEL) / 2, r$df))
      wide <- fieller(r, critical(loadings, r$df))
      add("utility", name, low = alone[1], high = alone[2], together_low = wide[1], together_high = wide[2])
    }
  }
  # Dunnett against the baseline.
  wanted <- conditions$wanted[conditions$condition %in% names(usable)]
  is_even <- max(wanted) <= UNEVEN * min(wanted)
  sizes <- vapply(usable, length, 0L)
  squares <- vapply(usable, function(x) sum((x - mean(x))^2), 0)
  pooled <- sum(squares) / sum(sizes - 1)
  error <- (if (is_even) rep(pooled, length(usable)) else squares / (sizes - 1)) / sizes
  names(error) <- names(usable)
  loadings <- pmin(sqrt(error[baseline] / (error[others] + error[baseline])), 0.999)
  for (name in others) {
    both <- error[[name]] + error[[baseline]]
    pair <- c(name, baseline)
    df <- if (is_even) sum(sizes - 1) else 1 / sum((error[pair] / both)^2 / (sizes[pair] - 1))
    difference <- mean(usable[[name]]) - mean(y)
    add("dunnett", name, difference = difference)
    if (has_enough(name)) {
      half <- critical(loadings, df) * sqrt(both)
      add("dunnett", name, low = difference - half, high = difference + half, t = difference / sqrt(both),
          df = df, p = tail_of(abs(difference) / sqrt(both), loadings, df))
    }
  }
}

if (length(usable) >= 2) {
  long <- data.frame(y = unlist(usable), g = factor(rep(names(usable), lengths(usable)), names(usable)))
  fitted <- anova(lm(y ~ g, long))
  add("anova", "", F = fitted$F[1], p = fitted$`Pr(>F)`[1], df_between = fitted$Df[1],
      df_within = fitted$Df[2], eta_squared = fitted$`Sum Sq`[1] / sum(fitted$`Sum Sq`))
  # Tukey-Kramer. qtukey is exact to four digits only; the root of ptukey is exact.
  k <- length(usable); df <- fitted$Df[2]
  width <- uniroot(function(q) ptukey(q, k, df) - TOGETHER, c(0.1, 200), tol = 1e-10)$root
  pairs <- combn(names(usable), 2)
  for (i in seq_len(ncol(pairs))) {
    x <- usable[[pairs[1, i]]]; y <- usable[[pairs[2, i]]]
    difference <- mean(x) - mean(y)
    se <- sqrt(fitted$`Mean Sq`[2] / 2 * (1 / length(x) + 1 / length(y)))
    add("tukey", paste(pairs[1, i], "-", pairs[2, i]), difference = difference, low = difference - width * se,
        high = difference + width * se, p = ptukey(abs(difference) / se, k, df, lower.tail = FALSE))
  }
}

if (origin == "simulated") cat("Computational observers, not people.\n\n")
show <- function(value, digits = 3, scale = 1) {
  ifelse(is.na(value), "-", formatC(scale * value, format = "f", digits = digits))
}
p_of <- function(p) ifelse(p < 0.001, "p < 0.001", paste("p =", show(p)))
rows <- do.call(rbind, lapply(seq_len(nrow(conditions)), function(i) {
  name <- conditions$condition[i]
  get <- function(part, measure, ...) show(of(part, name, measure), ...)
  blocks <- vapply(colnames(by_block), function(b) get("conditions", paste0("block_", b), 1, 100), "")
  data.frame(
    condition = conditions$label[i], n = get("conditions", "n", 0), t(blocks),
    mean = get("conditions", "accuracy_mean", 1, 100),
    interval = paste0("[", get("conditions", "accuracy_low", 1, 100), ", ",
                      get("conditions", "accuracy_high", 1, 100), "]"),
    utility = get("utility", "utility", 2),
    together = if (is.na(of("utility", name, "together_low"))) "-" else
      paste0("[", get("utility", "together_low", 2), ", ", get("utility", "together_high", 2), "]"),
    p = get("dunnett", "p"))
}))
names(rows) <- c("condition", "n", paste0("block_", colnames(by_block)), "mean %", "95 %", "utility",
                 paste(signif(100 * TOGETHER, 4), "% together"), "p (Dunnett)")
options(width = 200)
print(rows, row.names = FALSE, right = FALSE)
if (!is.na(of("anova", "", "F"))) {
  cat("\nOne-way ANOVA of accuracy per person: F(", of("anova", "", "df_between"), ", ",
      of("anova", "", "df_within"), ") = ", show(of("anova", "", "F"), 2), ", ", p_of(of("anova", "", "p")),
      ", eta squared = ", show(of("anova", "", "eta_squared")), "\n\nAll pairs (Tukey-Kramer), percentage points:\n",
      sep = "")
  for (pair in unique(made$name[made$analysis == "tukey"])) {
    cat("  ", pair, ": ", show(of("tukey", pair, "difference"), 1, 100), " [",
        show(of("tukey", pair, "low"), 1, 100), ", ", show(of("tukey", pair, "high"), 1, 100), "], ",
        p_of(of("tukey", pair, "p")), "\n", sep = "")
  }
}
cat("\nNot re-run here, see the report: ", paste(NOT_RE_RUN, collapse = "; "), ".\n", sep = "")
if (nzchar(out)) {
  made <- made[!is.na(made$value), ]
  made$value <- formatC(made$value, digits = 17, format = "g")
  write.csv(made, out, row.names = FALSE)
}
