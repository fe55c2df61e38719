/** A text that costs a naive scanner, parser or layout far more than its length. */
export interface HostileText {
  name: string;
  text: string;
}

const ESC = '\u001b';

/** Units repeated up to the requested length. */
const REPEATED: Record<string, string> = {
  // carriage returns and escapes, scanned by terminal decoders
  'carriage returns': '\r',
  'carriage returns and characters': 'a\r',
  'Windows line breaks': 'a\r\r\n',
  'escapes that end at once': `${ESC}[31m`,
  'escapes that never end': `${ESC}[3`,
  'a colour per character': `${ESC}[31ma${ESC}[42;1mb`,
  'titles that never end': `${ESC}]0;t`,
  'strings of eight-bit controls': '\u009d',
  'eight-bit controls with parameters': '\u009b3',
  'bare escapes': ESC,
  'nothing but nulls': '\u0000',
  'bidi marks': 'a\u202e',
  'zero-width signs': '\u200b',
  // whitespace and lines
  spaces: ' ',
  'empty lines': '\n',
  'tabs and spaces': '\t ',
  words: 'lorem ipsum ',
  'one sign': 'a',
  'words of 1,999 characters': `${'a'.repeat(1_999)} `,
  'letters with combining marks': 'e\u0301\u0302',
  'Arabic letters': 'ب',
  'letters joined by kashidas': '\u0640',
  'words of many scripts': 'аaԱᎪꓮⲁ𐐬ᚠ',
  'short words that read as Latin': 'с о ',
  'styled letters': '𝐬ｓ',
  'letters with their labels': 'а⟨Latin⟩',
  Thai: 'กข',
  'Khmer and no-break spaces': `${'កខ'.repeat(40)}\u00a0`,
  'letters and tabs': 'a\t',
  'emoji families': '👩‍👩‍👧‍👦',
  // inline markdown
  'stars and backticks with tildes': '*`~',
  'emphasis that opens and closes': '*~` ',
  stars: '*',
  'stars apart': '*a ',
  'endless strong emphasis': '**a ',
  underscores: '_a ',
  tildes: '~~a',
  'emphasis within emphasis': '*a **b ',
  backticks: '`',
  'backtick runs of two lengths': '`a``',
  brackets: '[',
  'links that never end': '[a](',
  'links within links': '[a](b',
  'images that never end': '![a',
  references: '[a][b]',
  'autolinks that never end': '<http://a',
  addresses: 'www.a.b ',
  'mail addresses': 'a@b.',
  'mail addresses that never end': 'a.',
  'tags that never end': '<a ',
  'attributes that never end': '<a b="',
  'comments that never end': '<!--',
  'instructions that never end': '<?',
  'angle brackets': '<',
  backslashes: '\\',
  'entities that never end': '&#1',
  ampersands: '&',
  'hard breaks': 'a  \n',
  maths: '$$a ',
  // blocks
  'quotes within quotes': '>',
  'quotes apart': '> ',
  'lists within lists': '- ',
  'numbered lists within lists': '1. ',
  'quoted lists': '> - ',
  'list items': '- a\n',
  'loose list items': '- a\n\n',
  'list items with alternating markers': '- a\n* b\n',
  headings: '# a\n',
  'underlined headings': 'a\n=\n',
  rules: '***\n',
  'fences that never end': '```\n',
  'tilde fences': '~~~\na\n',
  definitions: '[a]: b\n',
  'definitions that never end': '[a]:\n',
  footnotes: '[^a]: b\n',
  cells: '|a',
  rows: '|a|b|\n',
  'dashes and pipes': '|-',
  paragraphs: 'a\n\n',
  'html blocks': '<div>\n',
  // JSON
  braces: '{',
  'closing brackets': ']',
  'objects within objects': '{"a":',
  'quotes and backslashes': '\\"',
  'brackets after equals signs': '=[',
};

/** Texts whose head or tail determines the cost of the middle. */
const FRAMED: Record<string, [head: string, middle: string, tail: string]> = {
  'eight-bit strings that no terminator ends': ['', '\u009d', `${ESC}A`],
  'spaces before a sign': ['a', ' ', 'b'],
  'carriage returns before a sign': ['', '\r', 'x'],
  'empty lines before a sign': ['a', '\n', 'b'],
  'spaces at the end of each line': ['', `${' '.repeat(60)}a\n`, ''],
  'one list of deep steps': ['- a\n', `${' '.repeat(40)}- a\n`, ''],
  'one table of many columns': ['|', 'a|', '\n|-|\n'],
  'a table of many rows': ['|a|b|\n|-|-|\n', '|a|b|\n', ''],
  'a fence with one long line': ['```ts\n', 'a({[', '\n```'],
  'a fence of many lines': ['```ts\n', 'let a = `$' + '{1}`; // a\n', '```\n'],
  'a fence of regular expressions': ['```js\n', '/[(', '\n```'],
  'a fence of markup': ['```html\n', '<a b="c" ', '\n```'],
  'a fence of strings that never end': ['```py\n', '"""', '\n```'],
  'a link with a long address': ['[a](http://a.b/', 'a', ')'],
  'a link with many parentheses': ['[a](', '(', ')'],
  'a reference with a long name': ['[', 'a ', '][]'],
  'a quoted argument that never ends': ['{"command":"', 'a\\"', ''],
  'an argument that never ends': ['{"command": ', '"command": ', ''],
  'an array of arrays': ['[', '[],', '[]]'],
  'words for JSON before a bracket': ['', '{ ', ']'],
};

/**
 * Texts that cost naive code more than their length. Showing, parsing, searching and storing any of them must take
 * linear time.
 *
 * @param size the length of each, in UTF-16 units; none is longer
 */
export function hostileTexts(size: number): HostileText[] {
  const repeated = Object.entries(REPEATED).map(([name, unit]) => ({ name, text: filled(unit, size) }));
  const framed = Object.entries(FRAMED).map(([name, [head, middle, tail]]) => ({
    name,
    text: head + filled(middle, size - head.length - tail.length) + tail,
  }));
  return [...repeated, ...framed];
}

function filled(unit: string, size: number): string {
  return unit.repeat(Math.max(0, Math.floor(size / unit.length)));
}

/** A request input within the limits that costs a naive page far more than its size. */
interface HostileInput {
  name: string;
  kind: 'permission' | 'question';
  input: Record<string, unknown>;
}

/** Alternating zero-width characters; each gets its own label. */
export const zeroWidthCharacters = (count: number): string =>
  Array.from({ length: count }, (_, index) => String.fromCharCode(0x200b + (index % 4))).join('');

/** Inputs with names, values and options, each short on its own. */
export function hostileInputs(): HostileInput[] {
  const keys = (count: number, entry: (at: number) => [string, unknown]) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => entry(index)));
  const permissions: [string, Record<string, unknown>][] = [
    ['long key', { ['k'.repeat(800_000)]: 1 }],
    ['key of signs', { [`k${zeroWidthCharacters(100_000)}`]: 1 }],
    ['key from right to left', { ['אa'.repeat(100_000)]: 1 }],
    ['key of spaces', { ['k  '.repeat(1_300)]: 1 }],
    ['nested key of signs', { a: { [zeroWidthCharacters(100_000)]: 1 } }],
    ['values of signs', keys(100, (at) => [`k${at}`, zeroWidthCharacters(2_900)])],
    ['values from right to left', keys(100, (at) => [`k${at}`, 'אa'.repeat(1_500)])],
    ['values of lines', keys(100, (at) => [`k${at}`, 'line  \n'.repeat(1_000)])],
    ['thirty values of signs', keys(30, (at) => [`k${at}`, zeroWidthCharacters(2_900)])],
    ['thirty values from right to left', keys(30, (at) => [`k${at}`, 'אa'.repeat(1_500)])],
    ['thirty long values', keys(30, (at) => [`k${at}`, 'x'.repeat(6_000)])],
    ['long values', keys(100, (at) => [`k${at}`, 'x'.repeat(6_000)])],
    ['keys of signs', keys(100, (at) => [`k${at}${zeroWidthCharacters(2_900)}`, 1])],
    ['keys of some signs', keys(30, (at) => [`k${at}${zeroWidthCharacters(3)}`, zeroWidthCharacters(300)])],
    ['a few values of signs', keys(5, (at) => [`k${at}`, zeroWidthCharacters(2_900)])],
    [
      'command and texts of signs',
      { command: zeroWidthCharacters(9_000), content: zeroWidthCharacters(9_000), new_string: 'אa'.repeat(9_000) },
    ],
  ];
  const options = (count: number, text: string) =>
    Array.from({ length: count }, (_, index) => ({ label: `${index}${text}`, description: text }));
  const questions: [string, Record<string, unknown>][] = [
    ['options of signs', { questions: [{ question: 'Which?', options: options(100, zeroWidthCharacters(1_400)) }] }],
    ['options of some signs', { questions: [{ question: 'Which?', options: options(100, zeroWidthCharacters(4)) }] }],
    ['options from right to left', { questions: [{ question: 'Which?', options: options(100, 'אa'.repeat(700)) }] }],
    ['long options', { questions: [{ question: 'Which?', options: options(100, 'x'.repeat(4_000)) }] }],
    [
      'question of zero-width characters',
      { questions: [{ question: zeroWidthCharacters(9_900) }, { question: 'Why?' }] },
    ],
    [
      'questions of zero-width characters',
      {
        questions: Array.from({ length: 90 }, (_, index) => ({
          question: `${index}${zeroWidthCharacters(900)}`,
          header: zeroWidthCharacters(400),
        })),
      },
    ],
    ['question from right to left', { questions: [{ question: 'אa'.repeat(100_000) }] }],
  ];
  return [
    ...permissions.map(([name, input]) => ({ name, input, kind: 'permission' as const })),
    ...questions.map(([name, input]) => ({ name, input, kind: 'question' as const })),
  ];
}
