"""What is wrong with the places of a page, measured in the browser: sentences, none if nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.services import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
FAULTS = """(isTrial) => {
    const faults = [];
    const said = (e) => (e.textContent ?? "").trim().slice(0, 40);
    const name = (e) => `<${e.tagName.toLowerCase()} class="${e.className}"> "${said(e)}"`;
    const open = document.querySelector("dialog[open]");
    const scope = open ?? document.body;
    const width = document.documentElement.clientWidth, height = window.innerHeight;
    const isHidden = (e) =>
        e.closest(".sr-only, .skip, [hidden], noscript, script, style") ||
        !e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    // What scrolled places leave of a box; null if nothing.
    const seen = (e, box) => {
        let [l, t, r, b] = [box.left, box.top, box.right, box.bottom];
        for (let p = e; p && p !== document.documentElement; p = p.parentElement) {
            const style = getComputedStyle(p);
            if (p === e && !e.matches(".reservoir-panel, dialog")) continue;
            if (style.overflowX === "visible" && style.overflowY === "visible") continue;
            const clip = p.getBoundingClientRect();
            [l, t] = [Math.max(l, clip.left), Math.max(t, clip.top)];
            [r, b] = [Math.min(r, clip.right), Math.min(b, clip.bottom)];
        }
        return r - l > 1 && b - t > 1 ? { left: l, top: t, right: r, bottom: b } : null;
    };
    if (open?.scrollTop) faults.push(`begins in the middle: ${open.scrollTop} px above are not seen`);
    const { scrollWidth } = document.documentElement;
    if (scrollWidth > width) faults.push(`sideways: ${scrollWidth} of ${width} px`);
    const things = [];
    const CONTROLS = "button, a[href], input, textarea, select, output, summary, img, canvas";
    for (const e of scope.querySelectorAll(CONTROLS)) {
        if (isHidden(e)) continue;
        const box = seen(e, e.getBoundingClientRect());
        if (box) things.push({ e, box });
    }
    const walker = document.createTreeWalker(scope, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const e = node.parentElement;
        if (!node.textContent.trim() || isHidden(e)) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const rect of range.getClientRects()) {
            if (rect.width < 1) continue;
            if (rect.left < -0.5 || rect.right > width + 0.5) faults.push(`cut by the window: ${name(e)}`);
            for (let p = e; p && p !== scope; p = p.parentElement) {
                const style = getComputedStyle(p), clip = p.getBoundingClientRect();
                const isOut = rect.left < clip.left - 1 || rect.right > clip.right + 1;
                if (isOut && style.overflowX !== "visible") faults.push(`cut by its place: ${name(e)}`);
                const isBelow = rect.bottom > clip.bottom + 2 || rect.top < clip.top - 2;
                const isCut = isBelow && ["hidden", "clip"].includes(style.overflowY);
                if (isCut) faults.push(`cut in height: ${name(e)}`);
            }
            // The strip lies over the quiet line on purpose: it comes and goes, and pushes nothing.
            const isUnderStrip = e.closest(".line") && document.querySelector(".strip:not([hidden])");
            const box = seen(e, rect);
            if (box && !isUnderStrip) things.push({ e, box });
        }
    }
    const isText = (e) => e.matches(":not(button, input, img)");
    // A button without a look of its own that lies over the words of its label, which are its look.
    const isBare = (e) => e.matches("input") && getComputedStyle(e).appearance === "none";
    const isOwn = (e, other) => isBare(e) && e.closest("label")?.contains(other);
    // What stays in sight while a list or a dialog is scrolled lies over what is scrolled under it.
    const isSticky = (e) => {
        for (let p = e; p; p = p.parentElement) if (getComputedStyle(p).position === "sticky") return true;
        return false;
    };
    for (const [i, one] of things.entries()) {
        for (const other of things.slice(i + 1)) {
            if (one.e === other.e || one.e.contains(other.e) || other.e.contains(one.e)) continue;
            if (isSticky(one.e) || isSticky(other.e)) continue;
            if (isOwn(one.e, other.e) || isOwn(other.e, one.e)) continue;
            const [p, q] = [one.box, other.box];
            const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
            const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
            // The boxes of neighbouring lines may touch: a line is higher than its letters.
            const spare = isText(one.e) && isText(other.e) ? 6 : 2;
            if (across > 2 && down > spare) faults.push(`overlap: ${name(one.e)} and ${name(other.e)}`);
        }
    }
    const inside = (e) => {
        const box = e.getBoundingClientRect();
        const isAcross = box.left >= -0.5 && box.right <= width + 0.5;
        return isAcross && box.top >= -0.5 && box.bottom <= height + 0.5;
    };
    if (isTrial && !open) {
        const needed = ".board :is(.answer, .ask, .next, .text p, .picture img, .reservoir-toggle), .tool";
        for (const e of document.querySelectorAll(needed)) {
            const isNeeded = !isHidden(e) && !e.closest(".reservoir-panel");
            if (isNeeded && !inside(e)) faults.push(`outside the window: ${name(e)}`);
        }
    }
    const primary = [...scope.querySelectorAll(".button.primary")].find((e) => !isHidden(e));
    if (!isTrial && primary) {
        primary.scrollIntoView({ block: "nearest" });
        const box = primary.getBoundingClientRect();
        const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
        const top = document.elementFromPoint(x, y);
        if (!inside(primary) || !primary.contains(top)) faults.push(`cannot be reached: ${name(primary)}`);
        document.documentElement.scrollTop = 0;
        if (open) open.scrollTop = 0;
    }
    return [...new Set(faults)];
}"""


def faults_of(page: Page, *, is_trial: bool) -> list[str]:
    """Sideways scroll, a dialog that begins in its middle, cut texts, overlaps; on a trial what lies outside
    the window, elsewhere a main button that cannot be brought into it or is covered."""
    faults: list[str] = page.evaluate(FAULTS, is_trial)
    return faults


def axe_findings(page: Page) -> list[str]:
    """All that axe finds on the page as it is, by all of its rules and of any impact."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    broken: list[dict[str, Any]] = page.evaluate("async () => (await axe.run(document)).violations")
    return [f"{rule['id']}: {node['html'][:100]}" for rule in broken for node in rule["nodes"]]
