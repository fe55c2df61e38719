import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { RedactedText, wholeText } from '@interlude/protocol/redaction/redacted-text';
import { randomFrom } from './random';

/** A text as found in practice, with its secrets. */
interface Form {
  group: string;
  template: string;
  text: string;
  secrets: string[];
}

/**
 * The forms of tests/fixtures/redaction/forms.txt. Placeholders such as «hex32» are filled with random characters, so
 * that the file contains nothing that a scanner reports as a leak. A `+` inside a well-known prefix and ESC belong to
 * that notation.
 */
export function secretForms(seed: number): Form[] {
  const draw = drawer(seed);
  return entriesOf('forms.txt').map(({ group, text: template }) => {
    const secrets: string[] = [];
    const isShape = group === 'shapes';
    // Before the secrets, which may contain `ESC`.
    const filled = template.replaceAll('ESC', '\u001b').replaceAll(/«([^»]+)»/g, (_, spec: string) => {
      const value = fill(spec, draw);
      // the base64 of every key starts the same way
      if (spec !== 'PK') secrets.push(spec === 'pem64' ? value.slice(44, -60) : value);
      return value;
    });
    return { group, template, text: isShape ? filled.replaceAll(/(?<=\w)\+(?=[-\w~.])/g, '') : filled, secrets };
  });
}

/** Similar texts without secrets. */
export function harmlessTexts(seed: number): string[] {
  const draw = drawer(seed);
  return entriesOf('harmless.txt').map(({ text }) =>
    text.replaceAll(/«([^»]+)»/g, (_, spec: string) => fill(spec, draw)),
  );
}

/** Line prefixes of files, diffs and logs. */
const GUTTERS: readonly ((line: number) => string)[] = [
  (line) => `${String(line).padStart(6)}→`,
  (line) => `${String(line).padStart(6)}\t`,
  (line) => `${line}:`,
  (line) => `src/a-b.yaml:${line}:`,
  () => '+',
  () => '-',
  () => '> ',
  () => '2026-11-20T10:26:44.590Z ',
  () => '[2026-11-20 10:26:44] ',
  () => 'web-1  | ',
  (line) => `  ${line} │ `,
  () => '# ',
  () => '// ',
  () => ' * ',
  () => 'E   ',
  () => '[INFO] ',
  () => 'INFO  | ',
  () => 'Nov 20 10:26:44 host app[12]: ',
  (line) => `#12 0.${100 + line} `,
];

/** Multi-line forms with each line prefix. */
export function prefixedForms(forms: readonly Form[]): Form[] {
  return forms
    .filter(({ text }) => text.includes('\n'))
    .flatMap((form) =>
      GUTTERS.map((gutter) => ({
        ...form,
        template: `${gutter(1)}${form.template}`,
        text: form.text
          .split('\n')
          .map((line, index) => gutter(index + 1) + line)
          .join('\n'),
      })),
    );
}

/** Line continuations of POSIX shells, PowerShell and cmd. */
const CONTINUATIONS = [' \\\n  ', ' \\\r\n\t', ' `\n    ', ' ^\r\n  '];

/** Single-line commands with a continuation before each argument. */
export function continuedForms(forms: readonly Form[]): Form[] {
  const commands = forms.filter(({ group, text }) => /^(?:commands|shells)$/.test(group) && !text.includes('\n'));
  return commands.flatMap((form) =>
    CONTINUATIONS.map((sign) => ({
      ...form,
      template: `${JSON.stringify(sign)} in ${form.template}`,
      // Not inside quotes.
      text: form.text.replaceAll(/"[^"]*"|'[^']*'| +(?=\S)/g, (part) => (part.trim() === '' ? sign : part)),
    })),
  );
}

const NOISE = [
  ...['', 'All done.\n', '\n', '---\n', 'kind: ConfigMap\n', '| a | b |\n', 'a,b,c\n', '     12→x\n', '> said\n'],
  ...['{"a":"x\\ny \\"q\\""}\n', '<p>One <b>two</b></p>\n', '<tr><td>x</td>\n', '\u001b[31mred\u001b[0m\n', '"}\n'],
];

/** Two forms with surrounding text that may keep a block of the first one open. */
export function mixedForms(forms: readonly Form[], seed: number, count: number): Form[] {
  const random = randomFrom(seed);
  const noise = () => random.pick(NOISE);
  return Array.from({ length: count }, () => {
    const [first, second] = [random.pick(forms), random.pick(forms)];
    return {
      group: 'mixed',
      template: `${first.template} and ${second.template}`,
      text: `${noise()}${first.text}${random.pick(['\n', '\n\n', ' '])}${noise()}${second.text}\n${noise()}`,
      secrets: [],
    };
  });
}

function entriesOf(name: string): { group: string; text: string }[] {
  const path = fileURLToPath(new URL(`../fixtures/redaction/${name}`, import.meta.url));
  let group = '';
  const entries: { group: string; text: string }[] = [];
  for (const entry of readFileSync(path, 'utf8').trimEnd().split(/^%%/m).slice(1)) {
    const [head = '', ...lines] = entry.split('\n');
    group = head.trim() || group;
    entries.push({ group, text: lines.join('\n').replace(/\n$/, '') });
  }
  return entries;
}

const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const DIGITS = '0123456789';
const UPPER = LOWER.toUpperCase();
const ALPHABETS: Readonly<Record<string, string>> = {
  hex: '0123456789abcdef',
  alnum: LOWER + UPPER + DIGITS,
  UPPER: UPPER + DIGITS,
  sym: `${LOWER}${DIGITS}!@#%^*(-_=+)`,
};
const WORDS = ['hunter', 'letmein', 'dragon', 'sunshine', 'winter', 'monkey'];

type Draw = (alphabet: string, length: number) => string;

/** Seeded, so that a failure repeats with the same secrets. */
function drawer(seed: number): Draw {
  const random = randomFrom(seed);
  return (alphabet, length) => Array.from({ length }, () => random.pick([...alphabet])).join('');
}

function fill(spec: string, draw: Draw): string {
  const word = WORDS[Number(draw('012345', 1))] as string;
  switch (spec) {
    case 'PK':
      return ['PRIVATE', 'KEY'].join(' ');
    case 'pw':
      return draw(UPPER, 1) + draw(LOWER, 3) + draw(DIGITS, 2) + draw('!.@^~%', 1) + draw(LOWER + UPPER + DIGITS, 6);
    case 'pwu':
      return draw(UPPER, 1) + draw(LOWER, 3) + draw(DIGITS, 2) + draw(LOWER + UPPER + DIGITS, 7);
    case 'weak':
      return word + draw(DIGITS, 2);
    case 'words4':
    case 'words12':
      return Array.from({ length: Number(spec.slice(5)) }, () => draw(LOWER, 6)).join(' ');
    case 'digit6':
      return draw(DIGITS, 6);
    case 'pair':
      return btoa(`mara:${draw(ALPHABETS.alnum as string, 14)}`);
    case 'aws':
      return `${'IA'}${draw(UPPER + DIGITS, 16)}`;
    case 'pemline':
      return draw(`${ALPHABETS.alnum}+/`, 64);
    case 'pem64':
      return btoa(
        `-----BEGIN RSA ${fill('PK', draw)}-----\n${draw(ALPHABETS.alnum as string, 128)}\n-----END RSA ${fill('PK', draw)}-----\n`,
      );
    case 'uuid':
      return [8, 4, 4, 4, 12].map((length) => draw('0123456789abcdef', length)).join('-');
  }
  const [, kind = '', count = ''] = /^(\w+?)\.?(\d+)$/.exec(spec) ?? [];
  const length = Number(count);
  if (kind === 'b64') return btoa(draw(`${ALPHABETS.alnum}#+`, length));
  if (kind === 'b64u') return encodeURIComponent(btoa(draw(`${ALPHABETS.alnum}#+`, length)));
  if (kind === 'url64') return draw(`${ALPHABETS.alnum}-_`, length);
  const alphabet = ALPHABETS[kind];
  if (alphabet === undefined || !(length > 0)) throw new Error(`unknown placeholder «${spec}»`);
  // a random secret contains digits and letters
  return length < 6
    ? draw(alphabet, length)
    : `${draw(alphabet, length - 4)}${draw(DIGITS, 2)}${kind === 'UPPER' ? draw('AB', 1) : draw('abcdef', 1)}${draw(DIGITS, 1)}`;
}

/** Number of consecutive secret characters that count as a leak. */
const LEAK = 6;

function hasLeak(shown: string, secrets: readonly string[]): boolean {
  return secrets.some((secret) => {
    const length = Math.min(LEAK, secret.length);
    return Array.from({ length: secret.length - length + 1 }, (_, index) => secret.slice(index, index + length)).some(
      (part) => shown.includes(part),
    );
  });
}

/** Each state shown to a reader who receives the text in pieces. */
function* shownAfterEach(pieces: Iterable<string>): Generator<string> {
  const text = new RedactedText();
  let shown = '';
  for (const piece of pieces) {
    const more = text.more(piece);
    shown = more === null ? text.shown().text : shown + more;
    yield shown;
  }
}

export function shownByCharacter(text: string): Generator<string> {
  return shownAfterEach(`${text}\n`);
}

export const toolInput = (text: string) => JSON.stringify({ command: text, timeout: 1 });

/**
 * False if only later text identifies the secret, such as the program it is piped into. Partial text shows it before
 * that.
 */
export function isDetectableEarly({ template }: Form): boolean {
  return !/^(?:echo|printf) .*[|>]|^Use |^Type |-us12$/.test(template);
}

/** Forms that leak a secret in some shown state. */
export function leakingForms(
  forms: readonly Form[],
  shows: (text: string) => Iterable<string>,
  isInJson = false,
): string[] {
  return forms
    .filter(({ text, secrets }) => {
      const hidden = isInJson ? secrets.map((secret) => JSON.stringify(secret).slice(1, -1)) : secrets;
      for (const shown of shows(text)) if (hasLeak(shown, hidden)) return true;
      return false;
    })
    .map(({ template }) => template);
}

/** Prefixes after which a cut leaks a secret or changes the redacted whole. */
export function leakingCuts(forms: readonly Form[]): string[] {
  return forms.flatMap(({ text, secrets }) => {
    const whole = wholeText(text).shown().text;
    return Array.from({ length: text.length - 1 }, (_, index) => text.slice(0, index + 1)).filter((beginning) => {
      const [first = '', last = ''] = shownAfterEach([beginning, text.slice(beginning.length)]);
      return hasLeak(first, secrets) || last !== whole;
    });
  });
}
