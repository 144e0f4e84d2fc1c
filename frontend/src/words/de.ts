/** Every word of the interface in German. */
import type { Words } from "./en";

export const de: Words = {
  code: "de",
  direction: "ltr",

  skip: "Zum Inhalt springen",
  progress: (percent) => `${percent} % erledigt`,
  step: (step, steps) => `Schritt ${step} von ${steps}`,
  left: (minutes) =>
    minutes < 0.75
      ? "noch weniger als eine Minute"
      : `noch etwa ${Math.round(minutes)} ${Math.round(minutes) === 1 ? "Minute" : "Minuten"}`,
  left_short: (minutes) => (minutes < 0.75 ? "noch unter 1 Min." : `noch etwa ${Math.round(minutes)} Min.`),
  part: (part, parts) => (parts === 1 ? "" : `Teil ${part} von ${parts}`),
  number: (number, count) => `${number} von ${count}`,
  phase: { train: "Lernen", test: "Vorhersagen" },
  preview: "Vorschau: nichts wird gespeichert und nichts bezahlt",

  offline: (count) =>
    count === 0
      ? "Sie sind offline. Bitte lassen Sie diese Seite offen; es geht von selbst weiter."
      : `Sie sind offline. ${count} ${count === 1 ? "Antwort ist" : "Antworten sind"} hier aufbewahrt; bitte lassen ` +
        "Sie diese Seite offen.",
  server_silent: (count) =>
    count === 0
      ? "Der Server antwortet gerade nicht. Bitte lassen Sie diese Seite offen; es geht von selbst weiter."
      : `Der Server antwortet gerade nicht. ${count} ${count === 1 ? "Antwort ist" : "Antworten sind"} hier ` +
        "aufbewahrt; bitte lassen Sie diese Seite offen.",

  connecting: "Verbindung wird hergestellt …",
  saving: "Ihre Antworten werden gespeichert …",
  loading: (done, total) => `Bilder werden geladen: ${done} von ${total}`,
  loading_failed_title: "Nicht alle Bilder wurden geladen",
  loading_failed: (count) =>
    `${count} ${count === 1 ? "Bild konnte" : "Bilder konnten"} nicht geladen werden. Nichts ist verloren. Bitte ` +
    "prüfen Sie Ihre Verbindung und versuchen Sie es noch einmal.",
  try_again: "Noch einmal versuchen",
  sending: "Einen Moment …",

  title: {
    device: "Ihr Bildschirm wird geprüft",
    consent: "Bevor Sie teilnehmen",
    plates: "Farben prüfen",
    instructions: "So geht es",
    quiz: "Einige Fragen, ob alles klar ist",
    practice: "Übung",
    screen: "Die Größe Ihres Bildschirms",
    questions: "Einige Fragen",
    comment: "Zum Schluss",
    declined: "Sie nehmen nicht teil",
    screened: "Die Studie endet hier für Sie",
    turned_away: "Alle Plätze sind vergeben",
    withdrawn: "Sie haben die Studie verlassen",
    debrief: "Vielen Dank",
  },

  device: {
    checking: "Ihr Bildschirm wird geprüft …",
    again: "Noch einmal prüfen",
    elsewhere: "Am Computer weitermachen",
    by_link:
      "Öffnen Sie diesen Link an einem Computer, jetzt oder später. Er ist nur für Sie bestimmt: Bitte geben Sie ihn " +
      "nicht weiter. Er startet die Studie, solange ein Platz frei ist.",
    by_platform: "Öffnen Sie diese Aufgabe an einem Computer, mit Ihrem eigenen Konto auf der Plattform.",
    copy: "Link kopieren",
    not_now: "Jetzt nicht",
    give_back: "Ich nehme nicht teil",
    later_title: "Sie können später teilnehmen",
    later: "Noch hat nichts begonnen, und Sie haben nichts verloren. Sie können diese Seite schließen.",
    here: "Hier weitermachen",
    size: (width, height) => `Ihr Fenster ist jetzt ${width} mal ${height} Pixel groß.`,
  },
  consent: {
    agree: "Ich stimme zu und nehme teil",
    decline: "Ich stimme nicht zu",
    download: "Diesen Text herunterladen",
    print: "Drucken",
    file: "einwilligung.html",
  },
  screen: {
    slider: "Größe des Rahmens",
    smaller: "Kleiner",
    larger: "Größer",
    fits: "Die Karte passt in den Rahmen",
    no_card: "Ich habe keine Karte zur Hand",
    untouched: "Bitte ändern Sie die Größe des Rahmens, bis die Karte genau hineinpasst.",
    distance_title: "Wie weit ist Ihr Bildschirm entfernt?",
    distance_text:
      "Sitzen Sie so, wie Sie es auch danach tun. Verdecken Sie Ihr rechtes Auge, und sehen Sie mit dem linken die ganze " +
      "Zeit auf das schwarze Quadrat. Drücken Sie die Schaltfläche oder die Leertaste: Ein roter Punkt bewegt sich nach " +
      "links. An einer Stelle verschwindet er. Drücken Sie genau in dem Moment noch einmal, in dem Sie ihn nicht mehr sehen.",
    go: "Punkt bewegen",
    gone: "Der Punkt ist verschwunden",
    tries: (done, tries) => `Versuch ${done} von ${tries}`,
    cannot: "Das kann ich nicht",
    missed: "Der Punkt ist ganz durchgelaufen. Bitte versuchen Sie es noch einmal.",
    result_title: "Stimmt das?",
    result: (cm) => `Danach sind Ihre Augen etwa ${cm} cm vom Bildschirm entfernt.`,
    unlikely: "Die Entfernung ließ sich so nicht bestimmen.",
    yes: "Ja, ungefähr",
    again: "Noch einmal messen",
  },
  fullscreen: {
    title: "Ganzer Bildschirm",
    text:
      "Die Bilder sieht man am besten, wenn nichts um sie herum ist. Die Seite kann bis zum letzten Bild den ganzen " +
      "Bildschirm füllen. Sie können das jederzeit mit der Taste Esc beenden; es geht nichts verloren.",
    enter: "Bildschirm füllen",
    decline: "So weitermachen",
    back: "Ganzer Bildschirm",
  },
  next: "Weiter",
  submit: "Antworten abschicken",
  attempts_left: (count) =>
    count === 1 ? "Das ist Ihr letzter Versuch." : `Sie haben noch ${count} Versuche.`,
  not_right:
    "Nicht alles war richtig. Bitte lesen Sie die Anleitung noch einmal und versuchen Sie es erneut.",
  practice: {
    examples: "Sehen Sie sich zuerst diese Beispiele an.",
    start: "Übung beginnen",
    count: (index, count) => `Übung ${index} von ${count}`,
    right: (label) => `Richtig: Die Maschine hat ${label} geantwortet.`,
    wrong: (label) => `Nicht richtig: Die Maschine hat ${label} geantwortet.`,
    kept: (choice) => `Sie hatten schon ${choice} geantwortet, und das gilt.`,
  },
  form: {
    required: "Bitte beantworten Sie diese Frage.",
    optional: "(freiwillig)",
    number: (min, max) =>
      min !== null && max !== null
        ? `Bitte geben Sie eine ganze Zahl von ${min} bis ${max} ein.`
        : min !== null
          ? `Bitte geben Sie eine ganze Zahl ab ${min} ein.`
          : max !== null
            ? `Bitte geben Sie eine ganze Zahl bis ${max} ein.`
            : "Bitte geben Sie eine ganze Zahl ein.",
    missing: (count) =>
      count === 1
        ? "Eine Antwort fehlt oder stimmt noch nicht."
        : `${count} Antworten fehlen oder stimmen noch nicht.`,
  },
  plates: {
    start: "Beginnen",
    count: (index, count) => `Bild ${index} von ${count}`,
    leave_out: "Diese Prüfung auslassen",
    leave_title: "Die Prüfung auslassen?",
    leave_text:
      "Was Sie darin bisher geantwortet haben, wird entfernt. Die Studie endet dann für Sie früher, und Sie werden bezahlt " +
      "wie alle, für die sie früher endet.",
    leave_confirm: "Auslassen",
    leave_stay: "Mit der Prüfung weitermachen",
  },
  comment: {
    prompt: "Ihre Anmerkung",
    finish: "Abschließen",
  },

  block: {
    title: (part, parts) => (parts === 1 ? "Bereit zum Start" : `Teil ${part} von ${parts}`),
    back_title: "Willkommen zurück",
    back: (next, total) =>
      `Alle Ihre Antworten sind gespeichert. Es geht weiter mit Nummer ${next} von ${total}.`,
    begun: "Was Sie dort begonnen hatten, ist auch noch da.",
    train: (count) => `${count} ${count === 1 ? "Beispiel" : "Beispiele"} mit der Antwort der Maschine`,
    test: (count) =>
      `${count} ${count === 1 ? "Bild, bei dem" : "Bilder, bei denen"} Sie die Antwort vorhersagen`,
    key: (count) => `${count} ${count === 1 ? "Seite, die" : "Seiten, die"} Sie um einen Tastendruck ${count === 1 ? "bittet" : "bitten"}`,
    done: (done, parts) => `Sie haben ${done} von ${parts} Teilen geschafft.`,
    left: (minutes) =>
      minutes < 0.75
        ? "Der Rest dauert weniger als eine Minute."
        : `Der Rest dauert etwa ${Math.round(minutes)} ${Math.round(minutes) === 1 ? "Minute" : "Minuten"}.`,
    pause: "Eine kurze Pause ist hier in Ordnung: Bis Sie auf „Beginnen“ drücken, wird keine Zeit gemessen.",
    plan: "Als Nächstes:",
    untold_title: "Jetzt ohne Auflösung",
    told: (count) =>
      count === 1
        ? "Sie haben 1 Beispiel bearbeitet und danach die Antwort gesehen."
        : `Sie haben ${count} Beispiele bearbeitet und nach jedem die Antwort gesehen.`,
    untold:
      "Von hier bis zum Ende dieses Teils wird keine Antwort mehr gezeigt: Sobald Sie geantwortet haben, folgt die " +
      "nächste Seite.",
    start: "Beginnen",
    go_on: "Weiter",
  },

  trial: {
    original: "Bild",
    explanation: "Erklärung",
    text: "Text",
    marked: (words) => `Markiert, das Dunkelste zuerst: ${words}.`,
    sides: ["A", "B"],
    label: "Die Antwort der Maschine:",
    question: "Was hat die Maschine geantwortet?",
    sent: "Einen Moment: Ihre Antwort ist unterwegs.",
    yours: "Ihre Antwort",
    right: "richtige Antwort",
    next: "Weiter",
    space: "Leertaste",
    wait: "Bitte sehen Sie sich zuerst das Bild an. Die Knöpfe werden gleich aktiv.",
    ready: "Sie können jetzt antworten.",
    ready_next: "Sie können jetzt weitergehen.",
    choices: "Antworten",
    saw: { train: "Beispiel", test: "Bild zum Vorhersagen" },
  },
  legend: {
    importance: ["weniger wichtig", "wichtiger"],
    sides: ["gegen die Antwort", "für die Antwort"],
  },
  rating: {
    place: (number, count) => `Erklärung ${number} von ${count}`,
    end: (point, meaning) => `${point} – ${meaning}`,
    ready: "Sie können jetzt weitergehen.",
    missing: (count, numbers) =>
      count === 1 ? `Frage ${numbers} ist noch offen.` : `Die Fragen ${numbers} sind noch offen.`,
    wait: "Bitte sehen Sie noch einen Moment hin. Sie können gleich weitergehen.",
    enter: "Eingabe",
  },
  solve: {
    place: (number, count) => `Aufgabe ${number} von ${count}`,
    saw: "Aufgabe",
    question: "Was sehen Sie?",
    plate: "Bild zum Markieren",
    brush: "Pinsel",
    eraser: "Radierer",
    sizes: ["Klein", "Mittel", "Groß"],
    tools: "Pinsel oder Radierer",
    size: "Größe",
    steps: "Schritte",
    undo: "Zurück",
    redo: "Wieder",
    clear: "Leeren",
    hint: {
      reach: "Mit der Tastatur: Tab führt zum Bild.",
      moves: "Pfeile bewegen den Rahmen, die Leertaste markiert, Umschalt + Pfeil markiert auf dem Weg.",
      more: (has_letters) =>
        `${has_letters ? "B nimmt den Pinsel, E den Radierer, + und −" : "+ und −"} ändern die Größe, Strg + Z nimmt ` +
        "zurück, Eingabe sendet.",
    },
    cells: (count) => `${count} ${count === 1 ? "Feld" : "Felder"} markiert`,
    cell: (row, column, is_marked, count) =>
      `Zeile ${row}, Spalte ${column}, ${is_marked ? "markiert" : "nicht markiert"}; ${count} ${count === 1 ? "Feld" : "Felder"} markiert`,
    start: "Markieren Sie, wo Sie es sehen, und wählen Sie Ihre Antwort; die Reihenfolge ist gleich.",
    marked: (count) => `${count} ${count === 1 ? "Feld" : "Felder"} markiert. Wählen Sie jetzt Ihre Antwort.`,
    chosen: (answer) => `Ihre Antwort: ${answer}. Markieren Sie jetzt, wo Sie es sehen.`,
    both: (answer, count) =>
      `Ihre Antwort: ${answer}, ${count} ${count === 1 ? "Feld" : "Felder"} markiert. Sie können sie senden.`,
    nothing: "Sie können es nicht sagen: Nichts muss markiert werden. Sie können das senden.",
    aside: (count) =>
      `${count} ${count === 1 ? "Feld ist" : "Felder sind"} beiseitegelegt. Eine Antwort oder der Pinsel holt ` +
      `${count === 1 ? "es" : "sie"} zurück.`,
    no_answer: (count) =>
      count === 0
        ? "Bitte markieren Sie, wo Sie es sehen, und wählen Sie eine Antwort."
        : "Bitte wählen Sie die Antwort, die Sie markiert haben.",
    no_marks: "Bitte markieren Sie im Bild, wo Sie es sehen.",
    send: "Senden",
  },
  review: {
    place: (number, count) => `Aufgabe ${number} von ${count}`,
    saw: "Aufgabe",
    answer: "Antwort:",
    picture: "Bild",
    marked: "Markiert",
  },
  decide: {
    earlier: "Ihre erste Antwort:",
    advice: "Die Antwort der Maschine:",
    saw: { first: "Erste Entscheidung", second: "Zweite Entscheidung" },
  },
  training: {
    start: "Übung beginnen",
    answer: "Antworten",
    count: (index, count) => `Übungserklärung ${index} von ${count}`,
    fits: (told) => `Das passt. ${told}`,
    differs: (told) => `Eine andere Antwort passt besser. ${told}`,
    kept: (point) => `Sie hatten schon ${point} geantwortet, und das gilt.`,
  },
  reservoir: {
    title: (count) => `Beispiele, die Sie gesehen haben (${count})`,
    show: (count) => `Gesehene Beispiele zeigen (${count})`,
    hide: "Beispiele verbergen",
    tile: (index, label) => `Beispiel ${index}: Die Antwort der Maschine war ${label}`,
    hint: "Wählen Sie ein Beispiel, um es zu vergrößern.",
  },

  help: {
    open: "Anleitung",
    title: "Anleitung",
    short:
      "In den Beispielen sehen Sie ein Bild und die Antwort der Maschine. Danach sehen Sie nur noch Bilder und sagen, " +
      "was die Maschine geantwortet hat. Benutzen Sie die Knöpfe oder die Tasten, die darauf stehen.",
    close: "Schließen",
  },
  keys: {
    now: (keys: string) => `Ihre Tasten: ${keys}. Ändern`,
    text:
      "Sie dürfen mit anderen Tasten antworten, etwa mit der linken Hand oder auf einer anderen Tastatur. Die " +
      "Antworten behalten ihre Seiten. Sie können auch die Maus nehmen oder die Knöpfe berühren.",
    place: (index: number, count: number) =>
      count === 2 ? (index === 0 ? "Linke Antwort" : "Rechte Antwort") : `Antwort ${index + 1}`,
    use: "Diese Tasten nehmen",
    reset: (keys: string) => `Zurück zu ${keys}`,
    used: (keys: string) => `Ihre Tasten sind jetzt ${keys}.`,
    clash: "Jede Antwort braucht eine eigene Taste.",
    unusable: "Bitte wählen Sie für jede Antwort einen Buchstaben oder eine Ziffer: Andere Tasten haben eigene Aufgaben.",
  },

  leave: {
    open: "Studie verlassen",
    title: "Studie verlassen?",
    text: "Sie können jederzeit aufhören. Sie müssen keinen Grund nennen.",
    pay: "Wenn Sie jetzt gehen",
    pay_unknown: "Der Server konnte nicht gefragt werden. Wenn etwas bezahlt wird, sagt die nächste Seite, wie viel.",
    reason: "Warum hören Sie auf?",
    reasons: {
      cannot_see: "Ich kann die Bilder nicht gut genug sehen",
      time: "Es dauert zu lange",
      unclear: "Es ist nicht klar, was zu tun ist",
      technical: "Etwas funktioniert nicht",
      other: "Ein anderer Grund",
      unsaid: "Das möchte ich nicht sagen",
    },
    erase: "Meine bisherigen Antworten löschen",
    confirm: "Studie verlassen",
    stay: "Bleiben",
  },

  finish: {
    stored: (count) =>
      count === 1 ? "Ihre Antwort ist gespeichert." : `Alle ${count} Antworten sind gespeichert.`,
    left_title: "Sie haben die Studie verlassen",
    left: "Vielen Dank für Ihre Zeit.",
    code: "Ihr Abschlusscode",
    copy: "Code kopieren",
    copied: "Kopiert",
    copy_failed: "Bitte kopieren Sie, was markiert ist.",
    back: "Zurück zur Plattform",
    automatic: (seconds) =>
      `Sie kehren in ${seconds} ${seconds === 1 ? "Sekunde" : "Sekunden"} von selbst zur Plattform zurück.`,
    hand_in: "Auf der Plattform abgeben",
    hand_in_automatic: (seconds) =>
      `Ihre Arbeit wird in ${seconds} ${seconds === 1 ? "Sekunde" : "Sekunden"} von selbst abgegeben.`,
    stay: "Auf dieser Seite bleiben",
    stayed: "Sie bleiben auf dieser Seite. Bitte benutzen Sie den Knopf, wenn Sie so weit sind.",
    use_title: "Dürfen wir Ihre Antworten verwenden?",
    use_question:
      "Jetzt, da Sie wissen, worum es ging, dürfen Sie noch einmal entscheiden. Wenn Sie nichts wählen, werden Ihre " +
      "Antworten verwendet.",
    pay_same: "Ihre Bezahlung hängt nicht davon ab.",
    use: "Ja, meine Antworten verwenden",
    remove: "Nein, meine Antworten entfernen",
    used: "Vielen Dank. Ihre Antworten werden verwendet.",
    removed: "Ihre Antworten wurden entfernt.",
    remove_failed: "Das hat gerade nicht geklappt, und es wurde nichts geändert. Bitte versuchen Sie es noch einmal.",
    invite_title: "Dürfen wir Sie zu einem anderen Teil einladen?",
    invite_question:
      "Vielleicht gibt es jetzt oder später einen anderen Teil dieser Studie. Dürfen wir Ihnen über die Plattform schreiben, " +
      "wenn dort ein Platz für Sie ist? Ihre Antwort ändert nichts an diesem Teil und seiner Bezahlung.",
    invite_yes: "Ja, Sie dürfen mich einladen",
    invite_no: "Nein, danke",
    invited: "Danke. Sie können zu einem anderen Teil eingeladen werden.",
    not_invited: "Danke. Sie werden zu keinem anderen Teil eingeladen.",
    invite_failed: "Das hat gerade nicht geklappt, und nichts wurde gespeichert. Bitte versuchen Sie es noch einmal.",
    check_title: "Die Prüfung der Farben",
    check: "Was hat die Farbprüfung gezeigt?",
    check_failed: "Das hat gerade nicht geklappt. Bitte versuchen Sie es noch einmal.",
    close: "Sie können diese Seite jetzt schließen.",
    give_back:
      "Bitte geben Sie die Aufgabe auf der Plattform mit deren eigenem Knopf zurück, damit jemand anderes sie nehmen " +
      "kann.",
  },

  trouble: {
    title: "Etwas ist schiefgegangen",
    cannot_show: (kind) => `Diese Seite kann nicht zeigen, was als Nächstes kommt („${kind}“).`,
    cannot_load: "Ein Teil dieser Seite konnte nicht geladen werden. Prüfen Sie bitte Ihre Verbindung und laden Sie die Seite neu.",
    nothing_lost: "Nichts ist verloren: Jede Antwort, die Sie vorher gegeben haben, ist gespeichert.",
    write_to: (contact) => `Wenn es noch einmal vorkommt, schreiben Sie bitte an ${contact}.`,
    write_to_somebody:
      "Wenn es noch einmal vorkommt, schreiben Sie den Forschenden bitte über die Plattform.",
    reload: "Seite neu laden",
    here: "Hier weitermachen",
    give_up: "Es klappt nicht: hier aufhören",
  },
  errors: {
    no_session: {
      title: "Diese Studie wurde in einem anderen Tab fortgesetzt",
      text: "Sie können dort weitermachen oder stattdessen hier. Jede Antwort, die Sie gegeben haben, ist gespeichert.",
    },
    no_study: {
      title: "Diese Studie wurde nicht gefunden",
      text:
        "Sie ist vielleicht beendet, oder die Adresse ist unvollständig. Bitte öffnen Sie die Studie noch einmal über " +
        "die Plattform.",
    },
    not_admitted: {
      title: "Sie können an dieser Studie nicht teilnehmen",
      text: "Die Studie lässt dieses Konto oder diesen Zugang nicht zu. Bitte kehren Sie zur Plattform zurück.",
    },
    taken_part: {
      title: "Sie haben bereits teilgenommen",
      text:
        "Sie haben so oft teilgenommen, wie eine Person teilnehmen kann. Ihre früheren Antworten sind gespeichert. " +
        "Bitte kehren Sie zur Plattform zurück.",
    },
    finished: {
      title: "Diese Studie ist für Sie beendet",
      text: "Ihre Antworten sind gespeichert. Sie können diese Seite schließen.",
    },
    full: {
      title: "Die Studie ist voll",
      text: "Alle Plätze sind vergeben. Sie haben nichts verloren; bitte kehren Sie zur Plattform zurück.",
    },
    bad_address: {
      title: "Diese Adresse funktioniert nicht",
      text: "Ein Teil fehlt oder wurde verändert. Bitte öffnen Sie die Studie noch einmal über die Plattform.",
    },
    text_changed: {
      title: "Der Text wurde geändert",
      text: "Bitte lesen Sie den neuen Text und antworten Sie noch einmal.",
    },
    incomplete: {
      title: "Einige Antworten fehlen",
      text: "Die Seite geht zur ersten Antwort zurück, die fehlt.",
    },
    invalid: {
      title: "Eine Antwort wurde nicht angenommen",
      text: "Bitte prüfen Sie Ihre Eingabe und versuchen Sie es noch einmal.",
    },
    too_large: {
      title: "Eine Antwort ist zu lang",
      text: "Bitte kürzen Sie Ihre Eingabe und versuchen Sie es noch einmal.",
    },
    out_of_turn: { title: "Die Seite war nicht auf dem Stand", text: "Sie wurde abgeglichen." },
    contradiction: { title: "Die Seite war nicht auf dem Stand", text: "Sie wurde abgeglichen." },
    unknown: {
      title: "Etwas ist schiefgegangen",
      text: "Der Server hat abgelehnt, was diese Seite geschickt hat.",
    },
  },
};
