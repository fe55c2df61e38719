import { expect, it } from 'vitest';
import { lookalikes } from '@/components/ui/lookalikes';
import { nameText, verbatimPieces } from '@/components/ui/verbatim';

/** Names of files, tools, branches and options in many languages. */
const HONEST = [
  'Bash',
  'git push --force-with-lease',
  'naïve café',
  'Straße',
  'ışık',
  'öğrenci',
  'đường phố',
  'łódź',
  'Ångström',
  'Zürich',
  'São Paulo',
  'façade',
  'jalapeño',
  'Þórr',
  'Æthelred',
  'Dvořák',
  'ĉapelo',
  'niño',
  'o’clock',
  '1ª',
  'Nº 5',
  'привет',
  'Файл с данными',
  'а у нас все хорошо',
  'отчёт.txt',
  'настройки',
  'сахар',
  'хаос',
  'НЕТ',
  'РОССИЯ',
  'ресурс',
  'сору',
  'ΝΕΑ',
  'СЕРВЕР',
  'СТАТУС',
  'ОТВЕТ',
  'НОМЕР',
  'МОСКВА',
  'УСТАНОВКА',
  'ТОКЕН',
  'КАРТА',
  'АВТОР',
  'АКТ',
  'ТЕСТ-1.txt',
  'git commit -m "сон и хаос"',
  'Ещё один сервер',
  'git commit -m "Не трогать: это с продакшена"',
  'Їжак',
  'съешь',
  'Ћуприја',
  'шчэ',
  'данные2',
  'Ελληνικά',
  'Όχι',
  'ναι',
  'για το αρχείο',
  'Αθήνα',
  'ρύθμιση.md',
  'και τα λοιπά',
  'ファイル',
  'Tシャツ',
  'USBメモリ',
  '東京タワー',
  'ＡＢＣ株式会社',
  'テスト用データ',
  '第１章',
  'カー',
  'お茶',
  '한국어',
  'API키',
  '서울역',
  '漢字',
  'X光',
  '注音ㄅㄆ',
  'Q版',
  'عربي',
  'ملف البيانات',
  'فارسی',
  'עברית',
  'קובץ',
  'हिन्दी',
  'ไทย',
  'ქართული',
  'ծրագիր',
  'தமிழ்',
  'አማርኛ',
  'ខ្មែរ',
  // Units, variables, particles and mathematics.
  'kΩ',
  'MΩ',
  'Δt',
  'ΔE',
  'ΔΔCt',
  'πr²',
  'Ωmega',
  'μTorrent',
  'α-β',
  'α-helix',
  'γ-ray',
  'λ-calculus',
  'الـAPI',
  'والـAPI',
  'APIها',
  'С++',
  'ООО',
  'СССР',
  'НАТО',
  'ΚΑΙ',
  'ΝΑΤΟ',
  'kadın hakları için',
  '−5 °C',
  'a − b',
  '1⁄2',
  'pages 3–5',
  '①',
  '说明；好',
  'ls（目录）',
  '请先运行 npm install，然后 npm test。再用 Node.js。',
  '製品情報 ｜ ABC',
  'API一覧',
  'ユーザーID',
  '二〇二〇年',
  'USB口',
  'в PR-ах',
  '中文，English，混排。',
  'да/нет, и/или',
  'ѕвезда',
  'һәм',
  'Абдуллаһ',
  'дӏа',
  'ノー problem',
  'コーヒー API',
  'Windows／Mac対応',
  '路径：/etc/hosts',
  'Привет! Запусти `ls -la` в /tmp',
  'ノートPC',
  'GitHubへpush',
  'Москва',
  '日本語のファイル',
  '한국어 파일',
  'Ответ на PR-у',
  'Проверь `git log` с API',
  'τι;',
  'Τι κάνεις\u037e',
  '—Hola',
  '٥ ملفات',
  '१२३',
  'm² × 3',
  'x²',
  'CO₂',
  'µs',
  '50 µm',
  '≈ 10⁻³',
  'a→b',
  '✓ done',
  '👩‍👩‍👧',
  '½',
  '™',
  '№ 7',
];

/** Letters used as lookalikes. A `|` follows the letters that must be marked. */
const HOSTILE = [
  // Words of several scripts, words that read as Latin, and styled ASCII letters.
  'pа|ypal',
  'раура|l',
  'gі|thub',
  'miс|rо|soft',
  'cο|nfig',
  'а|pple',
  'ѕ|udo',
  'cս|rl',
  'ո|pm',
  'exе|c',
  'dе|lete',
  'adм|in',
  'rоо|t',
  'mcp__gі|thub__push',
  'ι|nstall',
  'α|ws',
  'ο|ps',
  'Α|dmin',
  'Ꭺ|dmin',
  'ꓮ|dmin',
  'Bа|sh',
  'Ва|sh',
  'Rеа|d',
  'Wrі|te',
  'Е|dі|t',
  'goо|gle.com',
  'https://pа|ypal',
  './scrір|t.sh',
  '--fо|rce',
  'passwо|rd',
  'tо|ken',
  'Allо|w',
  'Dе|ny',
  'lо|gin',
  'usе|r',
  'hо|st',
  'Привe|т',
  'данныe|',
  'сору| x',
  'sudo ехес|',
  'аррӏе|.com',
  'cp с| d',
  'rm ос|',
  'սոս| -y',
  'ραν|.py',
  'get рурі|',
  'Wrı|te',
  'Edı|t',
  'ı|d',
  'passw໐|rd',
  '٥|k',
  '௦|k',
  '8০|80',
  'a１|',
  'ᎪᏞᏞᎾᎳ|',
  'ᏚᏌᎠᎾ|',
  'ꓢꓴꓓꓳ|',
  'ⓢⓤⓓⓞ|',
  'Ⓑ|ash',
  '🅢🅤🅓🅞|',
  '🄱|ash',
  'ΒΑ|SΗ|',
  'cά|t',
  'ω|rite',
  'η|pm',
  'κ|ill',
  'γ|es',
  'τ|oken',
  '["rm","−|rf"]',
  'ه|ello',
  'rm −|rf /',
  'rm ‐|rf',
  'rm –|rf',
  'rm ⁃|rf',
  'git push −−|force',
  'cat ⁄|etc∕|passwd',
  'a∕|b',
  '~⧸|x',
  'ls \u037e| rm',
  'ls ；| rm',
  'echo ‵|id‵|',
  'echo ｀|id｀|',
  'ls ｜| sh',
  'a ＆|＆| b',
  'github․|com',
  'https：|//x',
  '𝐬𝐮𝐝𝐨|',
  '𝓇𝓂|',
  '𝖈𝖚𝖗𝖑|',
  '𝚎𝚡𝚎𝚌|',
  '𝔞|b',
  'ｓｕｄｏ|',
  'ｃ|url',
  'ꜱᴜᴅᴏ|',
  'ᴇ|xᴇ|c',
  'ſ|udo',
  'ɡ|it',
  'ɑ|ws',
  'ﬁ|le',
  'Ⅷ|',
  'ℓ|s',
  'K|elvin',
  '𝟏𝟐|',
  'AWS_РАТН|=/x',
  'РАТН|=/x ls',
  'echo $НОМЕ|/x',
  './сору|',
  'cat /etc/да/ехес|.sh',
  'Ваѕһ|',
  'Ѕһеӏӏ|',
  'ѕѕһ|',
  'https://аррӏе|.com/да',
  '中𝐬𝐮𝐝𝐨|',
  // Strokes of Hangul, Han and Kana.
  'https://googㅣ|e.com',
  'rm ー|rf',
  'cat x 丨| sh',
  'g〇|ogle.com',
  'catノ|etc',
  'echo x ᐳ| y',
  'a ǀ| sh',
  // Symbols and punctuation.
  'd℮|ny',
  'sud⍵|',
  'https꞉|//x',
  'https∶|//x',
  'evil.com╱|path',
  'evil.com⟋|path',
  'google。|com',
  'prod‑|eu',
  'hot‐|fix',
  'rm ∗|',
  'ls ∣| sh',
  'echo ˋ|idˋ|',
];
const OTHER_LANGUAGES = ['да', '中', 'café', '한국어', 'öğrenci', 'Ελληνικά', 'テスト'];
/** Texts that put a word beside another language. */
const BESIDE: ((text: string, other: string) => string)[] = [
  (text, other) => `${text} # ${other}`,
  (text, other) => `${other}\n${text}`,
  (text, other) => JSON.stringify({ command: text, note: other }).replaceAll(String.raw`\\"`, "'"),
];

const marked = (text: string) => {
  let [shown, at] = ['', 0];
  for (const { end } of lookalikes(text)) {
    shown += `${text.slice(at, end)}|`;
    at = end;
  }
  return shown + text.slice(at);
};

it('has enough confusable and harmless words in its corpus', () => {
  expect(Math.min(new Set(HONEST).size, new Set(HOSTILE).size)).toBeGreaterThanOrEqual(60);
});

it.each(HONEST)('marks nothing in %s', (text) => {
  expect(marked(text)).toBe(text);
});

it.each(HOSTILE)('marks lookalikes in %s', (text) => {
  expect(marked(text.replaceAll('|', ''))).toBe(text);
});

it.each(OTHER_LANGUAGES)('marks the same beside %s', (other) => {
  const count = (text: string) => lookalikes(text).length;
  for (const text of HOSTILE.map((one) => one.replaceAll('|', '')))
    for (const beside of BESIDE) expect([text, count(beside(text, other))]).toEqual([text, count(text)]);
});

it('marks no harmless name beside a command', () => {
  const names = [
    'Москва',
    'отчёт.txt',
    '日本語のファイル',
    'café',
    'naïve',
    'Ångström',
    '한국어 파일',
    'Straße',
    '文件（新）',
  ];
  const texts = names.flatMap((name) => [
    `cat ${name}`,
    `rm -rf ${name} && ls`,
    `ls # ${name}`,
    `{"path":"/x/${name}"}`,
  ]);
  expect(texts.filter((text) => marked(text) !== text)).toEqual([]);
});

it('marks the name of a tool that reads as Latin', () => {
  const shown = (text: string) => verbatimPieces(text, 'tool').filter(({ kind }) => kind === 'origin').length;
  expect(['Ваѕһ', 'Ѕһеӏӏ', 'сору', 'САТ', 'mcp__Москва__сору', 'ναι'].map(shown)).toEqual([1, 1, 1, 1, 1, 1]);
  expect(['Москва', '文件', 'Bash', 'mcp__отчёт__read'].map(shown)).toEqual([0, 0, 0, 0]);
});

it('labels the script, or styled letters', () => {
  const labels = (text: string) => lookalikes(text).map(({ label }) => label);
  expect(['pаypal', 'cοnfig', 'ոpm', 'Ꭺdmin', '𝐬𝐮𝐝𝐨', 'ｓudo'].flatMap(labels)).toEqual([
    'Cyrillic',
    'Greek',
    'Armenian',
    'Cherokee',
    'styled',
    'styled',
  ]);
});

it('marks names and lines, not prose', () => {
  expect(nameText('pаypal')).toBe('pа⟨Cyrillic⟩ypal');
  const kinds = (layout: 'lines' | 'name' | 'words') =>
    verbatimPieces('pаypal', layout).map((piece) => ('label' in piece ? `(${piece.label})` : piece.text));
  expect(kinds('lines')).toEqual(['pа', '(Cyrillic)', 'ypal']);
  expect(kinds('name')).toEqual(['pа', '(Cyrillic)', 'ypal']);
  expect(kinds('words')).toEqual(['pаypal']);
});

it('ignores a label in the text, unless it names the same script', () => {
  expect(nameText('pа⟨Latin⟩ypal')).toBe('pа⟨Cyrillic⟩⟨Latin⟩ypal');
  expect(nameText('pа⟨Cyrillic⟩ypal')).toBe('pа⟨Cyrillic⟩ypal');
});

it('marks right-to-left letters in a Latin word', () => {
  const pieces = verbatimPieces('admסn', 'name').map((piece) => ('label' in piece ? piece.label : piece.kind));
  expect(pieces).toEqual(['text', 'rtl', 'Hebrew', 'text']);
});
