/**
 * Redaction on every way out to a reader without access to secrets, and in what a runner sends.
 *
 * @type {readonly import('./mutant.mjs').Mutant[]}
 */
export const REDACTION = [
  {
    name: 'answers a read model with its secrets',
    file: 'lib/queries/told-model.ts',
    find: "if (!redacts || typeof model !== 'object' || model === null) return model;",
    replace: 'if (redacts !== null) return model;',
    test: 'tests/unit/server/redacted-answers.test.ts',
  },
  {
    name: 'answers what nobody has cleared of secrets',
    file: 'lib/server/answer-route.ts',
    find: 'if (!principal.redacts || isRedacted(model)) return model;',
    replace: 'if (model.body !== undefined) return model;',
    test: 'tests/unit/server/redacted-streams.test.ts',
  },
  {
    name: 'runs AG-UI for a reader who is told no secrets',
    file: 'lib/server/answer-route.ts',
    find: 'if (principal.redacts && TELLS_ALL.test(pattern)) throw tellsAll();',
    replace: '',
    test: 'tests/unit/server/redacted-answers.test.ts',
  },
  {
    name: 'streams live secrets',
    file: 'lib/fan-out/broadcast.ts',
    find: 'const own = audience.redacts ? told : frame;',
    replace: 'const own = frame ?? { position: row.position, bytes: encodeText(rowFrame(row)) };',
    test: 'tests/unit/server/redacted-streams.test.ts',
  },
  {
    name: 'replays secrets',
    file: 'lib/fan-out/fan-out.ts',
    find: 'const redactor = redacts ? new RowRedactor(this.#database.reader) : null;',
    replace: 'const redactor = null;',
    test: 'tests/unit/server/redacted-answers.test.ts',
  },
  {
    name: 'streams the secrets of log lines',
    file: 'lib/fan-out/row-redactor.ts',
    find: 'return rowFrame({ ...row, line: redactLine(row.line) });',
    replace: 'return rowFrame(row);',
    test: 'tests/unit/server/redacted-answers.test.ts',
  },
  {
    name: 'shows the first half of a secret that streams',
    file: 'lib/redaction/redacted-text.ts',
    find: 'const { text, redacted } = this.#without(open, key < 0 ? findSecretsSoFar : findSecrets, open.length);',
    replace: 'const { text, redacted } = this.#without(open, findSecrets, open.length);',
    test: 'tests/unit/redaction/redacted-text.test.ts',
  },
  {
    name: 'shows the second half of a secret whose beginning is gone',
    file: 'lib/redaction/event-redactor.ts',
    find: 'return this.#anew(said, step, step.mayBegin ? deltaOf(event) : null);',
    replace: 'return this.#anew(said, step, deltaOf(event));',
    test: 'tests/unit/redaction/event-redactor.test.ts',
  },
  {
    name: 'finds log lines by their secrets',
    file: 'lib/queries/found-again.ts',
    find: 'if (!redacts || !searchesText(filter)) return lines;',
    replace: 'if (lines !== null) return lines;',
    test: 'tests/unit/server/redacted-answers.test.ts',
  },
  {
    name: 'finds sessions by their secrets',
    file: 'lib/queries/found-again.ts',
    find: 'const sessions = list.sessions.filter((session) => hasAll(sessionText(shown(session)), words));',
    replace: 'const sessions = list.sessions;',
    test: 'tests/unit/server/redacted-answers.test.ts',
  },
  {
    name: 'downloads a log with its secrets',
    file: 'lib/queries/download-log.ts',
    find: 'textLine(sight.redacts ? redactLine(line) : line)',
    replace: 'textLine(line)',
    test: 'tests/unit/server/redacted-answers.test.ts',
  },
  {
    name: 'serves a file to a reader who is told no secrets',
    file: 'lib/queries/read-attachment.ts',
    find: 'if (principal.redacts && !isImageType(mediaType)) {',
    replace: "if (principal.redacts && mediaType === '') {",
    test: 'tests/unit/server/redacted-answers.test.ts',
  },
  {
    name: 'shows the output of a task with its secrets',
    file: 'lib/redaction/event-redactor.ts',
    find: "const parts = output.parts.map((part) => ({ ...part, text: redactField('text', part.text, own, false) }));",
    replace: 'const { parts } = output;',
    test: 'tests/unit/server/redacted-answers.test.ts',
  },
  {
    name: 'sends a known token in a log line',
    file: 'lib/runner/logger/redactor.ts',
    find: 'this.#known.add(secret).add(encodeURIComponent(secret));',
    replace: '',
    test: 'tests/unit/runner/redactor.test.ts',
  },
  {
    name: 'sends the lines of a private key',
    file: 'lib/runner/logger/redactor.ts',
    find: 'const spans = this.#keyLines(component, plain) ?? findSecrets(plain, this.#known);',
    replace: 'const spans = findSecrets(plain, this.#known);',
    test: 'tests/unit/runner/redactor.test.ts',
  },
];
