/** Every word of the interface in English; the shape that other languages must fill. */
export const en = {
  code: "en",
  direction: "ltr" as "ltr" | "rtl",

  skip: "Skip to the content",
  progress: (percent: number) => `${percent} % done`,
  step: (step: number, steps: number) => `Step ${step} of ${steps}`,
  left: (minutes: number) =>
    minutes < 0.75
      ? "less than a minute left"
      : `about ${Math.round(minutes)} ${Math.round(minutes) === 1 ? "minute" : "minutes"} left`,
  /** The same on the line above a trial, which has little room. */
  left_short: (minutes: number) =>
    minutes < 0.75 ? "under 1 min left" : `about ${Math.round(minutes)} min left`,
  /** Nothing if there is no other part. */
  part: (part: number, parts: number) => (parts === 1 ? "" : `Part ${part} of ${parts}`),
  number: (number: number, count: number) => `${number} of ${count}`,
  phase: { train: "Learning", test: "Predicting" },
  preview: "Preview: nothing is stored and nothing is paid",

  offline: (count: number) =>
    count === 0
      ? "You are offline. Please leave this page open; it goes on by itself."
      : `You are offline. ${count} ${count === 1 ? "answer is" : "answers are"} kept here; please leave this page open.`,
  server_silent: (count: number) =>
    count === 0
      ? "The server does not answer at the moment. Please leave this page open; it goes on by itself."
      : `The server does not answer at the moment. ${count} ${count === 1 ? "answer is" : "answers are"} kept here; ` +
        "please leave this page open.",

  connecting: "Connecting…",
  saving: "Saving your answers…",
  loading: (done: number, total: number) => `Loading pictures: ${done} of ${total}`,
  loading_failed_title: "Not all pictures were loaded",
  loading_failed: (count: number) =>
    `${count} ${count === 1 ? "picture" : "pictures"} could not be loaded. Nothing is lost. Please check your ` +
    "connection and try again.",
  try_again: "Try again",
  sending: "One moment…",

  title: {
    device: "Checking your screen",
    consent: "Before you take part",
    plates: "Checking colours",
    instructions: "How it works",
    quiz: "A few questions to check that everything is clear",
    practice: "Practice",
    screen: "The size of your screen",
    questions: "A few questions",
    comment: "One last thing",
    declined: "You do not take part",
    screened: "The study ends here for you",
    turned_away: "All places are taken",
    withdrawn: "You have left the study",
    debrief: "Thank you",
  },

  device: {
    checking: "Checking your screen…",
    again: "Check again",
    elsewhere: "Continue on a computer",
    by_link:
      "Open this link on a computer, now or later. It is meant for you alone: please do not pass it on. It starts " +
      "the study as long as a place is free.",
    by_platform: "Open this task on a computer, with your own account on the platform.",
    copy: "Copy the link",
    not_now: "Not now",
    give_back: "I will not take part",
    later_title: "You can take part later",
    later: "Nothing has begun yet, and you have lost nothing. You may close this page.",
    here: "Go on here",
    size: (width: number, height: number) => `Your window is now ${width} by ${height} pixels.`,
  },
  consent: {
    agree: "I agree and take part",
    decline: "I do not agree",
    download: "Download this text",
    print: "Print",
    file: "consent.html",
  },
  screen: {
    slider: "Size of the frame",
    smaller: "Smaller",
    larger: "Larger",
    fits: "The card fits the frame",
    no_card: "I have no card at hand",
    untouched: "Please change the size of the frame until the card fits exactly.",
    distance_title: "How far away is your screen?",
    distance_text:
      "Sit as you will for the rest. Cover your right eye, and look at the black square with your left eye all the time. " +
      "Press the button or the space bar: a red dot moves to the left. At some place it disappears. Press again at the " +
      "very moment when you no longer see it.",
    go: "Let the dot move",
    gone: "The dot has disappeared",
    tries: (done: number, tries: number) => `Try ${done} of ${tries}`,
    cannot: "I cannot do this",
    missed: "The dot went all the way. Please try once more.",
    result_title: "Does this fit?",
    result: (cm: number) => `By this, your eyes are about ${cm} cm away from the screen.`,
    unlikely: "The distance could not be told from this.",
    yes: "Yes, about that",
    again: "Measure again",
  },
  fullscreen: {
    title: "Full screen",
    text:
      "The pictures are best seen without anything around them. The page can fill your whole screen until the last one. " +
      "You can leave that at any time with the key Esc, and nothing is lost.",
    enter: "Use the full screen",
    decline: "Go on without it",
    back: "Full screen",
  },
  next: "Continue",
  submit: "Submit answers",
  attempts_left: (count: number) =>
    count === 1 ? "This is your last try." : `You have ${count} tries left.`,
  not_right: "Not everything was right. Please read the instructions again and try once more.",
  practice: {
    examples: "Look at these examples first.",
    start: "Start practising",
    count: (index: number, count: number) => `Practice ${index} of ${count}`,
    right: (label: string) => `Right: the machine answered ${label}.`,
    wrong: (label: string) => `Not right: the machine answered ${label}.`,
    kept: (choice: string) => `You answered ${choice} before, and that stands.`,
  },
  form: {
    required: "Please answer this question.",
    optional: "(optional)",
    number: (min: number | null, max: number | null) =>
      min !== null && max !== null
        ? `Please enter a whole number from ${min} to ${max}.`
        : min !== null
          ? `Please enter a whole number of at least ${min}.`
          : max !== null
            ? `Please enter a whole number of at most ${max}.`
            : "Please enter a whole number.",
    missing: (count: number) =>
      count === 1
        ? "One answer is missing or not right yet."
        : `${count} answers are missing or not right yet.`,
  },
  plates: {
    start: "Start",
    count: (index: number, count: number) => `Picture ${index} of ${count}`,
    leave_out: "Leave this check out",
    leave_title: "Leave the check out?",
    leave_text:
      "What you have answered in it so far is removed. The study then ends early for you, and you are paid like everybody " +
      "for whom it does.",
    leave_confirm: "Leave it out",
    leave_stay: "Go on with the check",
  },
  comment: {
    prompt: "Your comment",
    finish: "Finish",
  },

  block: {
    title: (part: number, parts: number) => (parts === 1 ? "Ready to start" : `Part ${part} of ${parts}`),
    back_title: "Welcome back",
    back: (next: number, total: number) =>
      `All your answers are stored. You go on with number ${next} of ${total}.`,
    begun: "What you had begun there is kept too.",
    train: (count: number) => `${count} ${count === 1 ? "example" : "examples"} with the machine's answer`,
    test: (count: number) => `${count} ${count === 1 ? "picture" : "pictures"} where you predict the answer`,
    key: (count: number) => `${count} ${count === 1 ? "page that asks" : "pages that ask"} you to press a key`,
    done: (done: number, parts: number) => `You have done ${done} of ${parts} parts.`,
    left: (minutes: number) =>
      minutes < 0.75
        ? "The rest takes less than a minute."
        : `The rest takes about ${Math.round(minutes)} ${Math.round(minutes) === 1 ? "minute" : "minutes"}.`,
    pause: "A short pause is fine here: no time is measured until you press Start.",
    plan: "What comes next:",
    untold_title: "Now without the answers",
    told: (count: number) =>
      count === 1
        ? "You have done 1 example and saw the answer after it."
        : `You have done ${count} examples and saw the answer after each of them.`,
    untold:
      "From here to the end of this part no answer is shown: after you have given yours, the next page follows at once.",
    start: "Start",
    go_on: "Go on",
  },

  trial: {
    original: "Picture",
    explanation: "Explanation",
    text: "Text",
    /** For those who do not see the grey: the marked words, the darkest first. */
    marked: (words: string) => `Marked, the darkest first: ${words}.`,
    sides: ["A", "B"],
    label: "The machine's answer:",
    question: "What did the machine answer?",
    /** While a guess is stored, if that takes its time. */
    sent: "One moment: your answer is on its way.",
    yours: "your answer",
    right: "right answer",
    next: "Next",
    space: "Space",
    wait: "Please look at the picture first. The buttons become active in a moment.",
    ready: "You can answer now.",
    ready_next: "You can go on now.",
    choices: "Answers",
    saw: { train: "Example", test: "Picture to predict" },
  },
  /** The two ends of the scale of colours, the lower one first. */
  legend: {
    importance: ["less important", "more important"] as [string, string],
    sides: ["against the answer", "for the answer"] as [string, string],
  },
  rating: {
    place: (number: number, count: number) => `Explanation ${number} of ${count}`,
    /** The name of a point at an end of the scale. */
    end: (point: number, meaning: string) => `${point}, ${meaning}`,
    ready: "You can go on now.",
    /** `numbers` is a list of numbers in words of the language: "1, 3, and 5". */
    missing: (count: number, numbers: string) =>
      count === 1
        ? `Question ${numbers} is still to be answered.`
        : `Questions ${numbers} are still to be answered.`,
    wait: "Please look a moment longer. You can go on shortly.",
    enter: "Enter",
  },
  solve: {
    place: (number: number, count: number) => `Task ${number} of ${count}`,
    saw: "Task",
    question: "What do you see?",
    plate: "Picture, to be marked",
    brush: "Brush",
    eraser: "Eraser",
    sizes: ["Small", "Medium", "Large"] as [string, string, string],
    tools: "Brush or eraser",
    size: "Size",
    steps: "Steps",
    undo: "Undo",
    redo: "Redo",
    clear: "Clear",
    /** What the keyboard does. `has_letters`: no answer has the keys B and E. */
    hint: {
      reach: "With the keyboard: Tab goes to the picture.",
      moves: "Arrows move the frame, Space marks, Shift + arrow marks on the way.",
      more: (has_letters: boolean) =>
        `${has_letters ? "B takes the brush, E the eraser, + and −" : "+ and −"} change the size, Ctrl + Z undoes, Enter sends.`,
    },
    cells: (count: number) => `${count} ${count === 1 ? "cell" : "cells"} marked`,
    cell: (row: number, column: number, is_marked: boolean, count: number) =>
      `Row ${row}, column ${column}, ${is_marked ? "marked" : "not marked"}; ${count} ${count === 1 ? "cell" : "cells"} marked`,
    /** Where the person stands. */
    start: "Mark where you see it and choose your answer, in either order.",
    marked: (count: number) => `${count} ${count === 1 ? "cell" : "cells"} marked. Now choose your answer.`,
    chosen: (answer: string) => `Your answer: ${answer}. Now mark where you see it.`,
    both: (answer: string, count: number) =>
      `Your answer: ${answer}, with ${count} ${count === 1 ? "cell" : "cells"} marked. You can send it.`,
    nothing: "You cannot say: nothing has to be marked. You can send it.",
    aside: (count: number) =>
      `${count} marked ${count === 1 ? "cell is" : "cells are"} set aside, not sent. An answer or the brush brings ` +
      `${count === 1 ? "it" : "them"} back.`,
    no_answer: (count: number): string =>
      count === 0
        ? "Please mark where you see it and choose your answer, or that you cannot say."
        : "Please choose the answer that your marks show.",
    no_marks: "Please mark in the picture where you see it.",
    send: "Send",
  },
  review: {
    place: (number: number, count: number) => `Task ${number} of ${count}`,
    saw: "Task",
    answer: "Answer:",
    picture: "Picture",
    marked: "Marked",
  },
  decide: {
    earlier: "Your first answer:",
    advice: "The machine's answer:",
    saw: { first: "First decision", second: "Second decision" },
  },
  training: {
    start: "Start practising",
    answer: "Answer",
    count: (index: number, count: number) => `Practice explanation ${index} of ${count}`,
    /** What is told has the points that fit and why: "2 to 4: …". */
    fits: (told: string) => `That fits. ${told}`,
    differs: (told: string) => `Another answer fits better. ${told}`,
    kept: (point: string) => `You answered ${point} before, and that stands.`,
  },
  reservoir: {
    title: (count: number) => `Examples you have seen (${count})`,
    show: (count: number) => `Show the examples you have seen (${count})`,
    hide: "Hide the examples",
    tile: (index: number, label: string) => `Example ${index}: the machine's answer was ${label}`,
    hint: "Select an example to enlarge it.",
  },

  help: {
    open: "Instructions",
    title: "Instructions",
    short:
      "In the examples you see a picture and the machine's answer. After them you see pictures only, and you predict " +
      "what the machine answered. Use the buttons, or the keys that are printed on them.",
    close: "Close",
  },
  keys: {
    now: (keys: string) => `Your keys: ${keys}. Change them`,
    text:
      "You may answer with other keys, for instance with your left hand or on another keyboard. The answers keep " +
      "their sides. You can also use the mouse or touch the buttons.",
    place: (index: number, count: number) =>
      count === 2 ? (index === 0 ? "Left answer" : "Right answer") : `Answer ${index + 1}`,
    use: "Use these keys",
    reset: (keys: string) => `Back to ${keys}`,
    used: (keys: string) => `Your keys are now ${keys}.`,
    clash: "Each answer needs a key of its own.",
    unusable: "Please choose one letter or digit for each answer: other keys have uses of their own.",
  },

  leave: {
    open: "Leave the study",
    title: "Leave the study?",
    text: "You may stop at any time. You do not have to give a reason.",
    pay: "If you leave now",
    pay_unknown: "The server could not be asked about this. If anything is paid, the next page says how much.",
    reason: "Why do you stop?",
    reasons: {
      cannot_see: "I cannot see the pictures well enough",
      time: "It takes too long",
      unclear: "It is not clear what to do",
      technical: "Something does not work",
      other: "Another reason",
      unsaid: "I prefer not to say",
    },
    erase: "Delete the answers I have given so far",
    confirm: "Leave the study",
    stay: "Stay",
  },

  finish: {
    stored: (count: number) => (count === 1 ? "Your answer is stored." : `All ${count} answers are stored.`),
    left_title: "You have left the study",
    left: "Thank you for the time you gave.",
    code: "Your completion code",
    copy: "Copy the code",
    copied: "Copied",
    copy_failed: "Please copy what is selected.",
    back: "Return to the platform",
    automatic: (seconds: number) =>
      `You return to the platform by yourself in ${seconds} ${seconds === 1 ? "second" : "seconds"}.`,
    hand_in: "Hand in on the platform",
    hand_in_automatic: (seconds: number) =>
      `Your work is handed in by itself in ${seconds} ${seconds === 1 ? "second" : "seconds"}.`,
    stay: "Stay on this page",
    stayed: "You stay on this page. Please use the button when you are ready.",
    use_title: "May we use your answers?",
    use_question:
      "Now that you know what this was about, you may decide again. If you choose neither, your answers are used.",
    pay_same: "Your payment does not depend on it.",
    use: "Yes, use my answers",
    remove: "No, remove my answers",
    used: "Thank you. Your answers will be used.",
    removed: "Your answers have been removed.",
    remove_failed: "That did not work just now, and nothing was changed. Please try again.",
    invite_title: "May we invite you to another part?",
    invite_question:
      "There may be another part of this study, now or later. May we write to you through the platform if there is a place " +
      "for you? Your answer changes nothing about this part or its pay.",
    invite_yes: "Yes, you may invite me",
    invite_no: "No, thank you",
    invited: "Thank you. You may be invited to another part.",
    not_invited: "Thank you. You will not be invited to another part.",
    invite_failed: "That did not work just now, and nothing was stored. Please try again.",
    check_title: "The check of colours",
    check: "What did the colour check show?",
    check_failed: "That did not work just now. Please try again.",
    close: "You may close this page now.",
    give_back: "Please give the task back on the platform, with its own button, so that somebody else can take it.",
  },

  trouble: {
    title: "Something went wrong",
    cannot_show: (kind: string) => `This page cannot show what comes next (“${kind}”).`,
    cannot_load: "A part of this page could not be loaded. Please check your connection and load the page again.",
    nothing_lost: "Nothing is lost: every answer you gave before is stored.",
    write_to: (contact: string) => `If it happens again, please write to ${contact}.`,
    write_to_somebody: "If it happens again, please write to the researchers through the platform.",
    reload: "Load the page again",
    here: "Go on here",
    give_up: "It keeps failing: stop here",
  },
  errors: {
    no_session: {
      title: "This study was continued in another tab",
      text: "You can go on there, or go on here instead. Every answer you gave is stored.",
    },
    no_study: {
      title: "This study cannot be found",
      text: "It may be over, or the address is incomplete. Please open the study from the platform again.",
    },
    not_admitted: {
      title: "You cannot take part in this study",
      text: "This study does not admit this account or this way of entering. Please return to the platform.",
    },
    taken_part: {
      title: "You have already taken part",
      text: "You have taken part as often as one person can. Your earlier answers are stored. Please return to the platform.",
    },
    finished: {
      title: "This study is over for you",
      text: "Your answers are stored. You may close this page.",
    },
    full: {
      title: "The study is full",
      text: "All places are taken. You have not lost anything; please return to the platform.",
    },
    bad_address: {
      title: "This address does not work",
      text: "A part of it is missing or was changed. Please open the study from the platform again.",
    },
    text_changed: { title: "The text was changed", text: "Please read the new text and answer again." },
    incomplete: {
      title: "Some answers are missing",
      text: "The page goes back to the first one that is missing.",
    },
    invalid: { title: "An answer was not accepted", text: "Please check what you entered and try again." },
    too_large: { title: "An answer is too long", text: "Please shorten what you entered and try again." },
    out_of_turn: { title: "The page was out of step", text: "It has been brought up to date." },
    contradiction: { title: "The page was out of step", text: "It has been brought up to date." },
    unknown: { title: "Something went wrong", text: "The server refused what this page sent." },
  },
};

export type Words = typeof en;
