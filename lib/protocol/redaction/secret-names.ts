/** Classification of a name. The value of a `strong` name is a secret, that of a `weak` one only if it looks random. */
export interface NamedSecret {
  kind: string;
  strength: 'strong' | 'weak';
}

/** Last words of strong names. */
const WORDS: Readonly<Record<string, string>> = {
  ...kinds(
    'password',
    'password passwords passwd passwort passphrase passcode pass pwd pw psw pswd psk userpw mnemonic masterauth requirepass',
  ),
  ...kinds('secret', 'secret secrets credential credentials cred creds otp totp'),
  ...kinds('token', 'token authtoken jwt bearer pat'),
  ...kinds('api-key', 'apikey'),
};
/** Suffixes of lower-case compounds: `keystorepass`, `clientsecret`. */
const WORD_ENDS = (
  'password passwd passphrase passwort secret token apikey pwd pass pw accesskey accountkey secretkey ' +
  'privatekey masterkey sharedkey signingkey encryptionkey authkey appkey presharedkey storagekey ' +
  'licensekey servicekey consumerkey licencekey'
).split(' ');
/** Words that end with "pass" but do not name a password: `compass`, `bypass`. */
const OTHER_PASS_WORDS =
  /(?:com|by|tres|sur|over|under|encom|im|fore|multi|world|class|sky|single|first|last|second|full|gold|rail|day|night|render|back|front|high|low|band)pass$/;

/** Qualifiers of secret keys: `ACCESS_KEY`, `encryption.key`. */
const SECRET_KEYS = new Set(
  (
    'access account admin aes api app application auth authentication cipher client consumer cookie crypto data decryption ' +
    'deploy encrypt encryption enc hmac ingest ingestion instrumentation integration jwt kms license licence login logged ' +
    'in master nonce pre preshared private rsa sas secret secure security sending service session shared sign signing ' +
    'storage subscription system token vault wallet webhook wif write org organization team user account project server'
  ).split(' '),
);
/** Qualifiers of both secret and other keys: `session_key` is a weak name. */
const WEAK_KEYS = new Set(
  'data token user project server org organization team session cookie login storage system cipher ingest'.split(' '),
);
/** Qualifiers of keys that are not secret. */
const PUBLIC_KEYS = new Set(
  (
    'public pub primary foreign sort partition cache object lookup index idempotency row routing dedupe dedup group unique ' +
    'range hash query react issue ticket translation i18n message event config feature map dict json host fingerprint ' +
    'publishable site s3 bucket file path registry hot short cut arrow enter tab escape the this that a an his its cert ' +
    'certificate authorized known function column table field sub parent child root node entity composite candidate super ' +
    'surrogate natural business order item state local meta menu any each every same new old first last next socket'
  ).split(' '),
);

/** Suffixes allowed after a secret's name: `SECRET_KEY_BASE`, `tokenValue`, `password_prod`. */
const SUFFIXES = new Set(
  (
    'base value val text string str data plain plaintext cleartext clear raw hex b64 base64 encoded prod production dev ' +
    'development staging stage qa uat test testing live sandbox local old new current previous prev next primary secondary ' +
    'backup default admin root main confirm confirmation confirmed again repeat verify verification env ro rw a b c x y'
  ).split(' '),
);
/** Suffixes of names that describe a secret: `PASSWORD_FILE`, `token_type`. */
const METADATA_WORDS = new Set(
  (
    'file files path dir directory folder url uri urls link name names id ids uuid type types kind length len min max ' +
    'minimum maximum size count counts limit limits total budget usage used left remaining window ttl expiry expires ' +
    'expiration expired expire age lifetime policy rule rules hash hashed hasher digest fingerprint field fields label ' +
    'prompt placeholder hint help reset change changed update updated created creation at on date time timestamp required ' +
    'enabled disabled allowed header headers prefix suffix var variable ref refs reference arn version versions algorithm ' +
    'alg manager provider store stores rotation endpoint host port location format regex pattern strength error errors ' +
    'message messages input inputs output position index bytes status state valid validity validator validation invalid ' +
    'scope scopes issuer audience claims response request requests handler service factory class middleware guard util ' +
    'utils helper helpers controller module test tests spec rate ratio auth method mode source engine backend template ' +
    'list set map array generator parser reader writer visible visibility show hide toggle icon button form page screen ' +
    'view rule usages per and or for of is not has with from to by in count s'
  ).split(' '),
);
/** Last words of weak names. */
const WEAK: Readonly<Record<string, string>> = {
  ...kinds('secret', 'auth salt seed pepper code signature sig hmac pin phrase sid authorization cookie session'),
  ...kinds('token', 'tokens nonce'),
  ...kinds('private-key', 'd dp dq qi'),
};

/** Words that occur in many others (`pat` in `path`), so only a whole word counts. */
const SHORT_WORDS = new Set('code otp pat pin pw sid sig'.split(' '));

/** Matches every lower-case text that may name a secret. */
export const NAME_HINT = hintOf([...Object.keys(WORDS), ...WORD_ENDS, 'key', ...Object.keys(WEAK)]);

function hintOf(words: readonly string[]): RegExp {
  const long = words.filter((word) => word.length > 2 && !SHORT_WORDS.has(word));
  const least = long.filter((word) => !long.some((part) => part !== word && word.includes(part)));
  // Single letters of a JSON Web Key count only as fields.
  return new RegExp(
    [...new Set(least), `(?:${[...SHORT_WORDS].join('|')})(?![a-z])`, '"?d[pq]?"\\s*:', '<d>'].join('|'),
  );
}

/** "Password" in other languages, in lower case. */
export const PASSWORD_LABELS: ReadonlySet<string> = new Set(
  (
    'passwort|kennwort|contraseña|contrasena|senha|palavra-passe|mot de passe|wachtwoord|hasło|parola|' +
    'lösenord|passord|adgangskode|salasana|heslo|jelszó|şifre|parolă|zaporka|lozinka|пароль|парола|лозинка|' +
    'κωδικός|パスワード|密码|密碼|비밀번호|암호|mật khẩu|kata sandi|รหัสผ่าน|סיסמה|كلمة المرور|كلمة السر|पासवर्ड|পাসওয়ার্ড'
  ).split('|'),
);

/** "API key" and "token" in other languages, in lower case. */
export const TOKEN_LABELS: ReadonlySet<string> = new Set(
  (
    'api-schlüssel|zugriffstoken|geheimschlüssel|clave api|clave de api|clave secreta|clé api|jeton|' +
    'clé secrète|chave api|chave de api|chave secreta|chiave api|токен|ключ api|секретный ключ|トークン|apiキー|秘密鍵|' +
    '令牌|密钥|密鑰|秘钥|토큰|api 키'
  ).split('|'),
);

export function isPasswordLabel(text: string): boolean {
  return PASSWORD_LABELS.has(text.toLowerCase());
}

const NAME_CACHE = new Map<string, NamedSecret | null>();
const MAX_CACHED = 2_000;
const MAX_NAME_LENGTH = 128;

/** True for a name that describes a secret, such as its type. */
export function isMetadataName(name: string): boolean {
  return METADATA_WORDS.has(wordsOf(name).at(-1) ?? '');
}

/**
 * Classifies names such as `DB_PASS`, `secretKeyBase` and `spring.datasource.password`. Null if the name does not mark
 * a secret.
 */
export function secretName(name: string): NamedSecret | null {
  if (name.length < 1 || name.length > MAX_NAME_LENGTH) return null;
  const known = NAME_CACHE.get(name);
  if (known !== undefined) return known;
  const named = classifyWords(wordsOf(name), name);
  if (NAME_CACHE.size >= MAX_CACHED) NAME_CACHE.clear();
  NAME_CACHE.set(name, named);
  return named;
}

/**
 * Role of a field in a label–value pair. Labels of `value: …`: `name: DB_PASS`, `element: "Password input"` (a form
 * field), `question: "What is the password?"`, `path: /data/DB_PASSWORD` (a JSON pointer) and `type: password`.
 */
export type PairRole = 'label' | 'field' | 'question' | 'pointer' | 'type' | 'value';

const PAIR_ROLES: Readonly<Record<string, string>> = {
  ...kinds(
    'label',
    'name key id k variable param parameter parametername parameterkey field option attribute label env property setting configkey envname varname optionname',
  ),
  ...kinds(
    'field',
    'element selector locator target into placeholder css xpath arialabel labeltext fieldname inputname',
  ),
  ...kinds('question', 'question prompt'),
  ...kinds('pointer', 'path'),
  ...kinds('type', 'type inputtype'),
  ...kinds(
    'value',
    'value val v s string stringvalue default content text keys chars characters keystrokes parametervalue secretvalue plaintext defaultvalue fallback configvalue resolvedvalue optionvalue newvalue response answer',
  ),
};

/** True if a field with this name can hold the value of a label with this role. */
export function isValueOf(role: PairRole, name: string): boolean {
  if (role === 'pointer') return name === 'value';
  return role === 'question' || !/^(?:answer|response)$/i.test(name);
}

const ROLE_CACHE = new Map<string, PairRole | null>();

export function pairRole(name: string): PairRole | null {
  const known = ROLE_CACHE.get(name);
  if (known !== undefined) return known;
  const word = name.replaceAll(/[^A-Za-z]/g, '').toLowerCase();
  const role = Object.hasOwn(PAIR_ROLES, word) ? (PAIR_ROLES[word] as PairRole) : null;
  if (ROLE_CACHE.size >= MAX_CACHED) ROLE_CACHE.clear();
  ROLE_CACHE.set(name, role);
  return role;
}

/** Words that describe a form field for a secret. The short ones also occur within other words. */
export const SECRET_FIELD_WORDS = 'password|passwd|passcode|passphrase|secret|token';
export const SHORT_FIELD_WORDS = 'pass|pwd|pw|pin|otp';

/** The label or selector of a form field for a secret: `Password input`, `#login-password`, `[name=pw]`. */
const SECRET_FIELD = new RegExp(
  `(?<![A-Za-z])(?:${SECRET_FIELD_WORDS}|${SHORT_FIELD_WORDS}|api[ _-]?key)(?![A-Za-z])|[a-z](?:Pass(?:word|code)|Secret|Token|ApiKey)(?![a-z])`,
  'i',
);

/** Elements next to such a field. */
const RELATED_PARTS = 'meter|strength|hint|error|message|button|toggle|link|checkbox|label|help|forgot|reset';
const RELATED_PART = new RegExp(RELATED_PARTS, 'i');
/** Related parts, counts or lists at the end of a label or selector: `#token-list`. */
const RELATED_PART_AT_END = new RegExp(
  `(?:pass(?:word|code|phrase)?|secret|token|key)s?[-_ ]?(?:${RELATED_PARTS}|count|list|usage|table)s?["'\\])]{0,4}$`,
  'i',
);
/** A prompt for a secret: `Enter password:`, `What is the API key for staging?` */
const QUESTION =
  /^[^\r\n]{0,60}(?<![A-Za-z])(?:password|passphrase|passcode|pin|otp|secret|token|api[ _-]?key)(?: (?:for|of) [^\r\n]{1,60})?\s{0,2}[?:.]{0,3}\s{0,2}$/i;

function isSecretField(label: string): boolean {
  // A selector may also name the form and the page.
  if (RELATED_PART_AT_END.test(label) || (!/[#.[\]=>/]/.test(label) && RELATED_PART.test(label))) return false;
  return SECRET_FIELD.test(label) || label.split(/[^\p{L}]+/u).some(isPasswordLabel);
}

/** Classifies the value of a label; null if it is not a secret. */
export function secretOfLabel(role: PairRole, label: string): NamedSecret | null {
  if (role === 'value') return null;
  if (role === 'type') return label === 'password' ? PASSWORD_FIELD : null;
  if (role === 'field') return isSecretField(label) ? PASSWORD_FIELD : null;
  if (role === 'question') return QUESTION.test(label) ? PASSWORD_FIELD : null;
  // A JSON pointer is absolute; other paths are file paths.
  if (role === 'pointer' && !label.startsWith('/')) return null;
  return isCredentialHeader(label) ? CREDENTIAL_HEADER : secretName(label);
}

/** True for an HTTP header that carries credentials. */
export function isCredentialHeader(name: string): boolean {
  return /^(?:proxy-)?authorization$|^(?:set-)?cookie$/i.test(name);
}

const PASSWORD_FIELD: NamedSecret = { kind: 'password', strength: 'strong' };
const CREDENTIAL_HEADER: NamedSecret = { kind: 'authorization', strength: 'strong' };

/** Splits `dbPassword2`, `DB_PASSWORD_2` and `db.password` into `db`, `password`. */
function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '' && !/^v?\d{1,4}$/.test(word));
}

function classifyWords(words: string[], name: string): NamedSecret | null {
  let end = words.length;
  while (end > 1 && SUFFIXES.has(words[end - 1] as string)) end -= 1;
  const named = classifyLastWord(words.slice(0, end), name);
  if (named !== null) return named;
  // An environment variable may name the service last: PASSWORD_POSTGRES.
  const last = words.at(-1) ?? '';
  if (METADATA_WORDS.has(last) || !/^[A-Z][A-Z0-9_]+$/.test(name)) return null;
  const at = words.findIndex(
    (word, index) =>
      index > 0 &&
      classifyLastWord(words.slice(0, index), name)?.strength === 'strong' &&
      word !== 'key' &&
      !METADATA_WORDS.has(word),
  );
  if (at < 0 || words.slice(at).some((word) => METADATA_WORDS.has(word))) return null;
  return { kind: classifyLastWord(words.slice(0, at), name)?.kind ?? 'secret', strength: 'weak' };
}

function classifyLastWord(words: readonly string[], name: string): NamedSecret | null {
  const last = (words.at(-1) ?? '').replace(/\d{1,3}$/, '');
  const before = words.at(-2) ?? '';
  const kind = Object.hasOwn(WORDS, last) ? WORDS[last] : undefined;
  if (kind !== undefined) {
    if (last === 'pat' || last === 'jwt' || last === 'bearer' || last === 'otp' || last === 'totp')
      return { kind, strength: 'weak' };
    return { kind, strength: 'strong' };
  }
  if (last === 'key' || last === 'keys') return keyOf(before, words.length);
  if (last === 'auth' && /(?:^|[/:.\s])_auth$/.test(name)) return { kind: 'token', strength: 'strong' };
  if (last === 'string' && (before === 'secret' || before === 'secure')) return { kind: 'secret', strength: 'strong' };
  const weak = Object.hasOwn(WEAK, last) ? WEAK[last] : undefined;
  if (weak !== undefined) return { kind: weak, strength: 'weak' };
  const suffix = OTHER_PASS_WORDS.test(last) ? undefined : WORD_ENDS.find((word) => last.endsWith(word));
  if (suffix === undefined) return null;
  return { kind: suffix.endsWith('key') ? 'api-key' : (WORDS[suffix] ?? 'secret'), strength: 'strong' };
}

function keyOf(before: string, count: number): NamedSecret | null {
  if (count === 1 || PUBLIC_KEYS.has(before)) return null;
  const isSecret = SECRET_KEYS.has(before) || Object.hasOwn(WORDS, before);
  return { kind: 'api-key', strength: isSecret && !WEAK_KEYS.has(before) ? 'strong' : 'weak' };
}

function kinds(kind: string, words: string): Record<string, string> {
  return Object.fromEntries(words.split(' ').map((word) => [word, kind]));
}

/** The name before an assignment operator, the closing quotes or brackets between them, and the start of the name. */
export interface AssignedName {
  name: string;
  closing: string;
  start: number;
}

const MAX_ASSIGNED_LENGTH = 96;

/** A lookup table of ASCII characters, faster than a pattern for a test at every operator. */
function charTable(characters: RegExp): Uint8Array {
  return Uint8Array.from({ length: 128 }, (_, code) => (characters.test(String.fromCharCode(code)) ? 1 : 0));
}
export const BLANK = charTable(/[ \t]/);
const CLOSING = charTable(/["'`\])\\?!*]/);
const IN_NAME = charTable(/[\w.$-]/);
const QUOTE = charTable(/["'`]/);

export function isIn(table: Uint8Array, text: string, at: number): boolean {
  return table[text.charCodeAt(at)] === 1;
}

/** True if the characters around an operator allow an assignment. */
export function mayAssign(text: string, at: number, operator: string): boolean {
  if (operator === '|') return (isIn(BLANK, text, at - 1) && isIn(BLANK, text, at + 1)) || isIn(IN_NAME, text, at - 1);
  if (operator === '(') return isIn(IN_NAME, text, at - 1) && /[\s"'`\\@a-zA-Z[]/.test(text.charAt(at + 1));
  if (operator !== ',') return true;
  let end = at;
  while (end > 0 && at - end < 8 && isIn(BLANK, text, end - 1)) end -= 1;
  return isIn(QUOTE, text, end - 1);
}

export function nameBefore(text: string, at: number, operator: string): AssignedName {
  let end = at;
  const least = Math.max(0, at - 40);
  if (operator !== '(' && operator !== '>') while (end > least && isIn(BLANK, text, end - 1)) end -= 1;
  let nameEnd = end;
  if (operator !== '(') {
    while (nameEnd > 0 && end - nameEnd < 8 && isIn(CLOSING, text, nameEnd - 1)) nameEnd -= 1;
    if (text.charAt(nameEnd - 1) === '[') nameEnd -= 1;
  }
  let start = nameEnd;
  const first = Math.max(0, nameEnd - MAX_ASSIGNED_LENGTH);
  while (start > first && isIn(IN_NAME, text, start - 1)) start -= 1;
  return { name: text.slice(start, nameEnd), closing: text.slice(nameEnd, end), start };
}

/** Words that end a name of several words. */
const SECOND_WORD = /^(?:keys?|codes?|phrase|word|string|id)$/i;

/** Classifies a name together with the words before it: `Secret access key: …`. */
export function classifyName(text: string, name: string, closing: string, start: number): NamedSecret | null {
  const isAuth = text.charAt(start - 1) === ':' && name.endsWith('_auth');
  const named = secretName(isAuth ? `:${name}` : name);
  if (named?.strength === 'strong') return named;
  if (closing !== '' || text.charAt(start - 1) !== ' ' || !SECOND_WORD.test(name)) return named;
  const words = /((?:[A-Za-z][\w-]{0,24} ){1,3})$/.exec(text.slice(Math.max(0, start - 80), start))?.[1];
  if (words === undefined) return named;
  const several = secretName(`${words}${name}`);
  return several?.strength === 'strong' ? several : named;
}

/** True if only a prompt, an indent or a keyword such as `export` precedes the index on its line. */
export function startsLine(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - 48), at);
  return /(?:^|\n)[\s>+$#-]{0,24}(?:(?:export|set|setx|declare|local|readonly|typeset|env|ENV|ARG|Environment=)(?: -\w{1,3})? )?(?:[\w.-]*\.)?$/.test(
    before,
  );
}
