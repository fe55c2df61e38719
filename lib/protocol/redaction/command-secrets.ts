import { NAME_HINT, secretName } from './secret-names';
import { openEnded } from './secret-shapes';
import {
  argumentAt,
  isBenign,
  isFileName,
  isWord,
  MARK_PREFIX,
  PENDING,
  pendingSpan,
  type SecretSpan,
  spanOf,
} from './secret-values';

/** The secret part of an argument: the whole, or the text after the first such character. */
type Part = '' | ':' | '/' | '%' | ',' | '=';

interface CommandRule {
  /** Options followed by the secret: `-p hunter2`, `-phunter2`. */
  optionSecrets?: readonly string[];
  /** Options that take the secret only in the same argument (`-phunter2`). Alone, they prompt for it. */
  joined?: readonly string[];
  part?: Part;
  /** A required argument. */
  when?: string;
  /** Options with an argument that is not positional. */
  skips?: readonly string[];
  /** Subcommands, one of which must come first: `add_user` of `rabbitmqctl`. */
  after?: readonly string[];
  /** True if the preceding argument must name a secret: `put db/password …`. */
  isNamed?: boolean;
  /** Index of the secret among the positional arguments after `after`; -1 for the last of several. */
  position?: number;
}

/** Secret arguments by command, from the commands' manuals. */
const TABLE: readonly (readonly [commands: string, ...rules: CommandRule[]])[] = [
  ['mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlshow mysqlslap mycli', { joined: ['-p'] }],
  ['mariadb mariadb-dump mariadb-admin 7z 7za 7zz zip unzip', { joined: ['-p'] }],
  ['unrar rar', { joined: ['-p', '-hp'] }],
  ['zip unzip ipmitool ssh-keygen mosquitto_pub mosquitto_sub mosquitto_rr', { optionSecrets: ['-P'] }],
  [
    'curl',
    { optionSecrets: ['-u', '--user', '-U', '--proxy-user'], part: ':' },
    { optionSecrets: ['-b', '--cookie'], part: '=' },
  ],
  ['http https xh', { optionSecrets: ['-a', '--auth'], part: ':' }],
  ['skopeo', { optionSecrets: ['--creds', '--src-creds', '--dest-creds'], part: ':' }],
  ['etcdctl curlftpfs', { optionSecrets: ['--user'], part: ':' }],
  ['smbclient smbget rpcclient winexe pth-winexe net', { optionSecrets: ['-U', '--user'], part: '%' }],
  ['lftp ncftp', { optionSecrets: ['-u'], part: ',' }],
  ['sqlplus sqlldr expdp impdp rman', { part: '/', position: 0 }],
  ['sshpass mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat', { optionSecrets: ['-p'] }],
  ['docker podman nerdctl buildah skopeo oras crane helm az oc cf', { optionSecrets: ['-p'] }],
  [
    'cqlsh rdesktop psexec PsExec twine vsql evil-winrm nxc crackmapexec cypher-shell smbmap',
    { optionSecrets: ['-p'] },
  ],
  ['sqlcmd bcp isql', { optionSecrets: ['-P'] }],
  ['redis-cli valkey-cli keydb-cli', { optionSecrets: ['-a', '--pass'] }],
  [
    'ldapsearch ldapadd ldapmodify ldapdelete ldappasswd ldapwhoami ldapcompare ldapmodrdn kadmin',
    { optionSecrets: ['-w'] },
  ],
  ['ldappasswd', { optionSecrets: ['-s', '-a'] }],
  ['kadmin kadmin.local plink pscp psftp putty', { optionSecrets: ['-pw'] }],
  ['ssh-keygen', { optionSecrets: ['-N'] }],
  ['snmpwalk snmpget snmpset snmpbulkwalk', { optionSecrets: ['-A', '-X'] }],
  ['dotnet', { optionSecrets: ['-k', '-sk'] }],
  ['pk12util', { optionSecrets: ['-W', '-K'] }],
  ['swaks', { optionSecrets: ['-ap'] }],
  ['htpasswd', { skips: ['-C'], position: -1 }],
  ['rabbitmqctl', { after: ['add_user', 'change_password', 'authenticate_user'], position: 1 }],
  ['composer', { after: ['http-basic.*'], position: 1 }],
  ['net', { after: ['user'], position: 1 }, { after: ['use'], position: 1 }, { after: ['use'], position: 2 }],
  ['vault cargo', { after: ['login'], position: 0 }],
  ['nmcli', { after: ['password', 'wifi-sec.psk', '802-11-wireless-security.psk'], position: 0 }],
  ['rclone', { after: ['obscure'], position: 0 }],
  ['neo4j-admin', { after: ['set-initial-password'], position: 0 }],
  ['ngrok', { after: ['authtoken', 'add-authtoken'], position: 0 }],
  ['wpa_passphrase', { position: 1 }],
  ['ansible-vault', { after: ['encrypt_string'], position: 0 }],
  ['usermod useradd', { optionSecrets: ['-p'] }],
  [
    'security',
    { optionSecrets: ['-w'], when: 'add-generic-password' },
    { optionSecrets: ['-w'], when: 'add-internet-password' },
  ],
  ['security', { optionSecrets: ['-p'], when: 'unlock-keychain' }],
  ['poetry', { after: ['pypi-token.*'], position: 0 }, { after: ['http-basic.*'], position: 1 }],
  ['bundle', { after: ['config'], part: ':', position: 1 }, { after: ['config'], part: ':', position: 2 }],
  ['consul etcdctl', { after: ['put', 'set'], position: 1, isNamed: true }],
  ['kubectl oc', { optionSecrets: ['--from-literal'], part: '=', when: 'secret' }],
  ['aws', { optionSecrets: ['--value'], when: 'SecureString' }],
  ['az', { optionSecrets: ['--value'], when: 'secret' }],
  ['mkpasswd', { skips: ['-m', '-S', '-R'], position: 0 }],
  ['gh glab', { optionSecrets: ['--body', '-b', '--value', '-v'], when: 'secret' }],
];
const COMMANDS = new Map<string, readonly CommandRule[]>();
for (const [commands, ...rules] of TABLE) {
  for (const name of commands.split(' ')) COMMANDS.set(name, [...(COMMANDS.get(name) ?? []), ...rules]);
}
const COMMAND = new RegExp(
  String.raw`(?<![\w.-])(${[...COMMANDS.keys()]
    .sort((a, b) => b.length - a.length)
    .map((name) => name.replaceAll('.', String.raw`\.`))
    .join('|')})(?:\.exe)?(["'\`]?,?)(?=[\s,])`,
  'g',
);
/** Commands that run another command with its own arguments. */
const WRAPPERS = new Set(['docker', 'podman', 'nerdctl', 'kubectl', 'oc', 'sshpass']);
/** Longest command with its arguments, in UTF-16 code units. */
const MAX_COMMAND_LENGTH = 2_048;
const ARGUMENT =
  /\[redacted: [a-z0-9-]{1,40}\]|(\\{0,4}["'`])((?:[^"'`\\\n]|\\(?!["'`\n])|(?!\\{0,4}\1)["'`]){0,4096}?)(?:\1|$)|(?:[^\s"'`;|&<>()[\]{},]|,(?![\s"'`]))+,?|[\n;|&]/g;
/** `-passin pass:hunter2`, `-k hunter2`. */
const OPENSSL =
  /((?<!\w)-pass(?:in|out)?[\s=]{1,3}["'`]?pass:|\s(?:-k|-K|-passwd)\s{1,3}["'`]?|openssl\spasswd(?:\s{1,3}-(?:salt\s{1,3}\S{1,32}|\w{1,8})){0,3}\s{1,3}["'`]?(?!-))([^\s"'`]{3,512})/g;
/** `/p:hunter2` and `-p:hunter2` of Windows tools. `/p:Name=value` sets an MSBuild property. */
const SLASH = /(\s[/-](?:p|pass|password|pw|rp|pwd):["']?)(?![\w.]{1,64}=)([^\s"']{3,256})/gi;
const [OPENSSL_BEGUN, SLASH_BEGUN] = [openEnded(OPENSSL), openEnded(SLASH)];
/** A password piped into a command: `echo hunter2 | sudo -S`. */
const PIPED =
  /(?:echo|printf|<<<)\s{1,3}(?:-n\s{1,3}|-e\s{1,3}|'%s(?:\\n)?'\s{1,3}|"%s(?:\\n)?"\s{1,3})?["']?([^\s"'|$`<>]{3,512})["']?\s{0,3}\|\s{0,3}(?:sudo\s{1,3}(?:-\w{1,6}\s{1,3}){0,3}(?:-S|--stdin|chpasswd)|chpasswd|passwd|smbpasswd|kinit|su\b|gpg\b.{0,80}--passphrase-fd|cryptsetup|faillock|docker\s|podman\s|helm\s|gh\s|glab\s|crane\s|oras\s|az\s|vault\s)/g;

/** Finds secrets among command-line arguments. */
export function commandSecrets(text: string, lower: string, spans: SecretSpan[], isOpen = false): void {
  const hasOption = text.includes('-');
  if (hasOption) options(text, lower, spans, isOpen);
  COMMAND.lastIndex = 0;
  let [upTo, innerUpTo] = [0, 0];
  for (let match = COMMAND.exec(text); match !== null; match = COMMAND.exec(text)) {
    const { 0: whole, 1: command = '', index } = match;
    const isInner = index < upTo;
    if (isInner && (index < innerUpTo || WRAPPERS.has(command))) continue;
    const from = index + whole.length;
    innerUpTo = argumentSecrets(text, from, COMMANDS.get(command) ?? [], spans, isOpen, command);
    if (isInner) continue;
    upTo = innerUpTo;
    if (WRAPPERS.has(command)) innerUpTo = from;
  }
  if (lower.includes('openssl')) findPairs(text, [OPENSSL, OPENSSL_BEGUN], spans, isOpen);
  if (/\s[/-]\w{1,8}:/.test(text)) findPairs(text, [SLASH, SLASH_BEGUN], spans, isOpen);
  if (text.includes('|') && /echo|printf|<<</.test(text)) {
    for (const { 0: whole, 1: value = '', index } of text.matchAll(PIPED)) {
      if (isBenign(value) || isWord(value)) continue;
      const at = index + whole.indexOf(value, 4);
      const colon = /chpasswd/.test(whole) ? value.indexOf(':') + 1 : 0;
      spans.push({ start: at + colon, end: at + value.length, kind: 'password' });
    }
  }
}

/** Start of the command that a line continuation at the end of a text extends, at most MAX_COMMAND_LENGTH back. */
export function commandStart(text: string): number {
  const least = Math.max(0, text.length - MAX_COMMAND_LENGTH);
  let at = text.lastIndexOf('\n') + 1;
  while (at > least && /[\\`^]\r?\n$/.test(text.slice(at - 3, at))) at = text.lastIndexOf('\n', at - 2) + 1;
  return Math.max(at, least);
}

function findPairs(
  text: string,
  [pattern, pending]: readonly [RegExp, RegExp],
  spans: SecretSpan[],
  isOpen: boolean,
): void {
  for (const { 1: before = '', 2: value = '', index } of text.matchAll(pattern)) {
    if (!isBenign(value)) spans.push(spanOf(index + before.length, value, 'password'));
  }
  if (!isOpen) return;
  const found = pending.exec(text.slice(-600));
  if (found !== null) spans.push(pendingSpan(text.length - (found[2] ?? '').length, text));
}

/** `--password hunter2`, or as list elements: `"--password", "hunter2"`. */
const LONG_OPTION =
  /(?<![\w-])(--?[A-Za-z][\w.-]{1,48})(\\{0,4}["'`]?,?(?:[ \t]{0,4}\\\r?\n[ \t]{0,24}|[ \t]{1,4}|\\?\s{1,12}))(?:[$@])?(\\{0,4}["'`])?/g;

function options(text: string, lower: string, spans: SecretSpan[], isOpen: boolean): void {
  if (!NAME_HINT.test(lower)) return;
  for (const { 0: whole, 1: option = '', 2: between = '', 3: quote, index } of text.matchAll(LONG_OPTION)) {
    const named = secretName(option.replace(/^--?/, ''));
    if (named === null) continue;
    const isSingle = !option.startsWith('--');
    const start = index + whole.length;
    const isList = between.includes(',');
    const value = argumentAt(text, start, quote).replace(/[\])}]+$/, '');
    // The next argument may be a keyword: add_argument("--password", help="…").
    const isVariable = value.startsWith('{') && whole.endsWith('$');
    if (value === '' || /^-|^[a-z_]{1,24}=$/.test(value) || isVariable || isBenign(value)) continue;
    const isChosen = isList || quote !== undefined || !isWord(value);
    const least = named.kind === 'password' ? 3 : 6;
    const isSecret =
      named.strength === 'strong' ? isChosen && value.length >= least : value.length >= 16 && /\d/.test(value);
    if (isSecret && !(isSingle && named.kind !== 'password' && isWord(value)))
      spans.push(spanOf(start, value, named.kind));
    else if (isOpen && start + value.length === text.length) spans.push(pendingSpan(start, text));
  }
}

interface Argument {
  value: string;
  at: number;
  end: number;
  /** True for an option joined with a quoted value: `-p'hunter2'`. */
  isQuoted: boolean;
}

/** @returns the end of the command */
function argumentSecrets(
  text: string,
  from: number,
  rules: readonly CommandRule[],
  spans: SecretSpan[],
  isOpen: boolean,
  command: string,
): number {
  const window = text.slice(from, from + MAX_COMMAND_LENGTH);
  const found: Argument[] = [];
  ARGUMENT.lastIndex = 0;
  for (let match = ARGUMENT.exec(window); match !== null; match = ARGUMENT.exec(window)) {
    const { 0: whole, 1: quote, 2: inner } = match;
    if (whole === '') break;
    if (/^[;|&\n]$/.test(whole)) break;
    const at = from + match.index + (quote?.length ?? 0);
    const value = quote === undefined ? whole.replace(/,$/, '') : (inner ?? '');
    const previous = found.at(-1);
    // An option joined with its quoted value: -p'hunter2'.
    if (
      previous !== undefined &&
      quote !== undefined &&
      previous.end === from + match.index &&
      /^-(?:[A-Za-z]{1,2}|.*=)$/.test(previous.value)
    ) {
      previous.value += value;
      Object.assign(previous, {
        isQuoted: true,
        end: from + match.index + whole.length,
        at: at - (previous.value.length - value.length),
      });
      continue;
    }
    // The closing quote around the whole command.
    if (quote !== undefined && /[^\s,=([{:]/.test(window.charAt(match.index - 1))) break;
    found.push({ value, at, end: from + match.index + whole.length, isQuoted: false });
    if (found.length > 200) break;
  }
  for (const rule of rules) {
    for (const [at, argument] of secretArguments(found, rule, command))
      addArgument(text, at, argument, rule.part ?? '', spans, isOpen);
  }
  const last = found.at(-1);
  return last === undefined ? from : Math.max(from, last.at);
}

function secretArguments(found: readonly Argument[], rule: CommandRule, command: string): [number, string][] {
  const secrets: [number, string][] = [];
  if (rule.when !== undefined && !found.some(({ value }) => value === rule.when)) return secrets;
  let position = rule.after === undefined ? 0 : -1;
  let last: [number, string] | null = null;
  for (let index = 0; index < found.length; index += 1) {
    const { value, at, isQuoted } = found[index] as Argument;
    const next = found[index + 1];
    const isOption =
      rule.optionSecrets?.includes(value) ||
      (rule.part === ':' && /^-[A-Za-z]{1,6}u$/.test(value) && rule.optionSecrets?.includes('-u'));
    if (isOption && next !== undefined) {
      if (!next.value.startsWith('-') && !(value === '-p' && isPublished(command, found, next.value)))
        secrets.push([next.at, next.value]);
      index += 1;
      continue;
    }
    const joined = [...(rule.joined ?? []), ...(rule.optionSecrets ?? [])].find(
      (option) => value.startsWith(option) && value.length > option.length && /^-[A-Za-z]{1,2}$/.test(option),
    );
    if (joined !== undefined && !/^--/.test(value)) {
      const isEqual = value.charAt(joined.length) === '=';
      const rest = value.slice(joined.length + (isEqual ? 1 : 0));
      const isJoined = rule.joined?.includes(joined) === true || isQuoted || (rest.length > 3 && !isWord(rest));
      const isPort = joined === '-p' && rule.joined === undefined && isPublished(command, found, rest);
      if (isJoined && rest.length >= 2 && !/^(?:ort|assword)/.test(rest) && !isPort)
        secrets.push([at + value.length - rest.length, rest]);
      continue;
    }
    const long = rule.optionSecrets?.find((option) => option.startsWith('--') && value.startsWith(`${option}=`));
    if (long !== undefined) secrets.push([at + long.length + 1, value.slice(long.length + 1)]);
    if (rule.position === undefined) continue;
    if (value.startsWith('-')) {
      if (rule.skips?.includes(value)) index += 1;
      continue;
    }
    if (position < 0) {
      if (rule.after?.some((word) => word === value || (word.endsWith('*') && value.startsWith(word.slice(0, -1)))))
        position = 0;
      continue;
    }
    last = [at, value];
    if (position === rule.position && isPositional(value, rule, command, found)) secrets.push(last);
    position += 1;
  }
  if (rule.position === -1 && position > 1 && last !== null && isPositional(last[1], rule, command, found))
    secrets.push(last);
  return secrets;
}

/** True where -p takes a port or path: `docker run -p 80:80`, `mkdir -p a`. */
function isPublished(command: string, found: readonly { value: string }[], value: string): boolean {
  if (/^[\d.:/-]+(?:\/(?:tcp|udp))?$/.test(value)) return true;
  return (
    /^(?:docker|podman|nerdctl|helm|az|cf|oc|buildah)$/.test(command) && !found.some(({ value }) => value === 'login')
  );
}

function isPositional(value: string, rule: CommandRule, command: string, found: readonly { value: string }[]): boolean {
  if (command === 'htpasswd') return found.some(({ value }) => /^-\w*b/.test(value));
  if (rule.isNamed) return isNamedBefore(value, found);
  if (rule.part === ':') return /^[\w.@+-]+:[^\s/:][^\s:]{2,}$/.test(value);
  if (command === 'net') return !/^(?:\*|\/|\\|[A-Za-z]:)/.test(value);
  if (rule.part === '/') return /^[\w$#.-]{1,64}\/[^\s/@]{2,}/.test(value);
  return rule.part === undefined ? !isWord(value) || value.length > 5 : true;
}

function isNamedBefore(value: string, found: readonly { value: string }[]): boolean {
  const before = found[found.findIndex((argument) => argument.value === value) - 1]?.value ?? '';
  return secretName(before.replace(/^.*\//, ''))?.strength === 'strong';
}

function addArgument(text: string, at: number, value: string, part: Part, spans: SecretSpan[], isOpen: boolean): void {
  const cut = part === '' ? -1 : value.indexOf(part);
  if ((part !== '' && cut < 0) || value.startsWith(MARK_PREFIX)) return;
  let secret = value.slice(cut + 1);
  if (part === '/') secret = secret.replace(/@[^@]*$/, '');
  const start = at + cut + 1;
  const isEnd = isOpen && at + value.length >= text.length - 1;
  // A template variable whose brace ends the argument.
  const isVariable = secret === '$' && text.charAt(start + 1) === '{';
  if (secret === '' || isVariable || isBenign(secret) || (part === '' && isFileName(secret))) return;
  spans.push(spanOf(start, secret, 'password'));
  if (isEnd) spans.push({ start, end: at + value.length, kind: PENDING });
}
