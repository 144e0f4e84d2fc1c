# The values in witness.json: Rscript witness.R > witness.json, here, with lme4 and ordinal (Debian: r-cran-lme4,
# r-cran-ordinal). The data are made by make_data.py with effects that it states; they are nobody's answers.
suppressMessages({library(lme4); library(ordinal)})
options(digits = 15)

read <- function(file) {
  d <- read.csv(file)
  d$cell <- factor(paste(d$item, d$condition))
  d$condition <- factor(d$condition)
  d$person <- factor(d$person)
  d$item <- factor(d$item)
  d
}
numbers <- function(x) paste0("[", paste(sprintf("%.10f", x), collapse = ", "), "]")
sds <- function(m) sapply(c("person", "item", "cell"), function(f) attr(VarCorr(m)[[f]], "stddev"))
told <- function(name, m, m0, effects, thresholds, errors) {
  cat(sprintf('"%s": {"log_likelihood": %.10f, "log_likelihood_without": %.10f, "effects": %s, "errors": %s, "thresholds": %s, "sds": %s}',
    name, logLik(m), logLik(m0), numbers(effects), numbers(errors), numbers(thresholds), numbers(sds(m))))
}
cat("{")
b <- read("binary.csv")
tight <- glmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-9, maxfun = 1e5))
m <- glmer(answer ~ condition + (1 | person) + (1 | item) + (1 | cell), b, binomial, nAGQ = 1, control = tight)
m0 <- glmer(answer ~ 1 + (1 | person) + (1 | item) + (1 | cell), b, binomial, nAGQ = 1, control = tight)
told("glmer", m, m0, fixef(m)[-1], -fixef(m)[1], sqrt(diag(as.matrix(vcov(m))))[-1])
profile <- confint(m, parm = "condition1", method = "profile", quiet = TRUE)
cat(sprintf(',\n"glmer_profile": %s,\n', numbers(profile)))
o <- read("ordered.csv")
o$answer <- ordered(o$answer)
m <- clmm(answer ~ condition + (1 | person) + (1 | item) + (1 | cell), o)
m0 <- clmm(answer ~ 1 + (1 | person) + (1 | item) + (1 | cell), o)
k <- length(m$alpha)
told("clmm", m, m0, m$beta, m$alpha, sqrt(diag(vcov(m)))[(k + 1):(k + 2)])
cat("}\n")
