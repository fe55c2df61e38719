import { isObject, textOf } from '../fields';
import { MAX_ID_LENGTH } from '../limits';
import { findSecrets, mergeSpans } from './find-secrets';
import { redactedText } from './redacted-text';
import { isCredentialHeader, isValueOf, pairRole, secretName, secretOfLabel } from './secret-names';
import { isPlaceholder, isSecretValue, isWord, redactionMark, type SecretSpan } from './secret-values';
import { COLUMN_KEY, type Columns, isCellSecret, secretColumns } from './table-secrets';
import { nestedKind, nestedName } from './value-lists';

/** Counts redacted secrets. */
export interface Tally {
  redacted: number;
}

/**
 * Fields with content from agents, people or runners. Their keys are not ours: an `id` there is not an identifier, and
 * a key may be a secret or mark its value as one.
 */
export const FREE_FORM_FIELDS: ReadonlySet<string> = new Set([
  'args',
  'input',
  'status',
  'record',
  'content',
  'rawEvent',
  'snapshot',
]);

/** Fields that clients send back or sort by, which must stay unchanged. */
const IDENTIFIER = /^(?:id|ids|position|digest|hash|next|replyTo)$|(?:Id|Ids|Position|_id|_ids)$/;

/**
 * Redacts all texts of a JSON value. Returns the same object if it holds no secrets.
 *
 * @param isFree true for free-form content, whose keys are not ours
 */
export function redactValue(value: unknown, tally: Tally, isFree: boolean, name = ''): unknown {
  if (typeof value === 'string') return redactField(name, value, tally, isFree);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const given = isFree ? redactList(value, tally, name) : value;
    const entries = given.map((entry) => redactValue(entry, tally, isFree, name));
    return entries.some((entry, index) => entry !== value[index]) ? entries : value;
  }
  const marks = new FieldMarks(value, name, isFree);
  let hasChanged = false;
  const fields = Object.entries(value).map(([key, field]) => {
    const marked = marks.redact(key, field, tally);
    const next = marked.isDone
      ? marked.field
      : redactValue(marked.field, tally, isFree || FREE_FORM_FIELDS.has(key), marks.nameOf(key, field));
    const nextKey = isFree ? redactText(key, tally) : key;
    hasChanged ||= next !== field || nextKey !== key;
    return [nextKey, next] as const;
  });
  return hasChanged ? Object.fromEntries(fields) : value;
}

/** Redacts the secrets that other entries of a list mark. The caller still redacts each entry. */
export function redactList(list: readonly unknown[], tally: Tally, name: string): readonly unknown[] {
  const entries = redactArguments(list, tally, name).map((entry) => {
    const kind = typeof entry === 'string' ? nestedKind(name, null, entry) : null;
    return kind === null ? entry : countMark(kind, tally);
  });
  return redactTable(entries, tally);
}

/** Redacts the fields of an object that its other fields, or its name, mark as secrets. */
export class FieldMarks {
  readonly #secrets: ReadonlyMap<string, string>;
  readonly #columns: Columns | null;
  readonly #isManifest: boolean;
  readonly #growing: readonly string[];
  readonly #program: string | null;
  /** The key of the object; empty unless free-form. */
  readonly #name: string;

  constructor(value: object, name: string, isFree: boolean) {
    this.#name = isFree ? name : '';
    this.#secrets = isFree ? secretFields(value, name) : NO_FIELDS;
    this.#columns = isFree ? columnsOf(value) : null;
    this.#isManifest = isFree && isSecretManifest(value);
    this.#growing = isFree ? [] : streamedFields(value);
    this.#program = isFree ? programOf(value) : null;
  }

  /** Name used to classify a nested field: the object's if only that names a secret, else the field's. */
  nameOf(key: string, field: unknown): string {
    return (isObject(field) && nestedName(this.#name, key)) || key;
  }

  /** @returns the field; the caller still redacts it unless `isDone` */
  redact(key: string, field: unknown, tally: Tally): { field: unknown; isDone: boolean } {
    const nested = typeof field === 'string' ? nestedKind(this.#name, key, field) : null;
    const kind = this.#secrets.get(key) ?? nested;
    if (kind !== null && typeof field === 'string') return { field: countMark(kind, tally), isDone: true };
    if (kind !== null || (this.#isManifest && /^(?:data|stringData)$/.test(key)))
      return { field: withoutValues(field, tally), isDone: true };
    if (typeof field === 'string' && this.#growing.includes(key))
      return { field: redactText(field, tally, true), isDone: true };
    if (this.#program !== null && /^arg(?:s|v|uments)$/i.test(key) && Array.isArray(field))
      return { field: redactArguments([this.#program, ...field], tally, key).slice(1), isDone: false };
    const isTable = this.#columns !== null && Array.isArray(field) && field.every(Array.isArray);
    return { field: isTable ? redactRows(field, this.#columns, tally) : field, isDone: false };
  }
}

/** Fields that grow while text streams: title and preview of a session in a turn, text of a pending reply. */
function streamedFields(row: { openTurnId?: unknown }): readonly string[] {
  if (typeof row.openTurnId === 'string') return ['title', 'lastText'];
  return 'owedSince' in row ? ['text'] : [];
}

/** The command of an arguments field. */
function programOf(value: object): string | null {
  const [, program] = Object.entries(value).find(([key]) => /^(?:command|cmd|program|executable)$/i.test(key)) ?? [];
  return typeof program === 'string' && /^[\w./-]{1,64}$/.test(program) ? program : null;
}

const NO_FIELDS: ReadonlyMap<string, string> = new Map();

/**
 * Kinds of the fields that a sibling field or the object's name marks as secrets: `{ name: 'DB_PASSWORD', value: … }`,
 * `password: { value: … }`. A value may be an object: `{ key: …, value: { stringValue: … } }`.
 */
function secretFields(value: object, name: string): ReadonlyMap<string, string> {
  const entries = Object.entries(value);
  const values = entries.filter(([key]) => pairRole(key) === 'value');
  if (values.length === 0) return NO_FIELDS;
  const labels = entries.flatMap(([key, field]) => {
    const role = pairRole(key);
    // A locator may be an object: { locator: { label: 'Password' }, value: … }.
    const texts = role === 'field' && isObject(field) ? Object.values(field) : [field];
    return texts.flatMap((label) => {
      const named = role === null || typeof label !== 'string' ? null : secretOfLabel(role, label);
      return named === null || role === null ? [] : [{ label: label as string, named, role }];
    });
  });
  const outer = secretName(name);
  const kinds = values.flatMap(([key, field]) => {
    const paired = labels.find(({ role }) => isValueOf(role, key));
    const named = paired?.named ?? (outer?.strength === 'strong' ? outer : null);
    if (named === null) return [];
    const isSecret = (text: unknown) =>
      typeof text === 'string' && isSecretValue(text, named, paired?.label ?? name, STANDALONE);
    const holdsSecret = paired !== undefined && isObject(field) && Object.values(field).some(isSecret);
    return isSecret(field) || holdsSecret ? [[key, named.kind] as const] : [];
  });
  return new Map(kinds);
}

const STANDALONE = { isQuoted: true, isProse: false, next: '' };

/** True for a Kubernetes Secret, whose values are all secret. */
function isSecretManifest(value: object): boolean {
  return 'kind' in value && value.kind === 'Secret' && ('data' in value || 'stringData' in value);
}

function withoutValues(data: unknown, tally: Tally): unknown {
  if (typeof data !== 'object' || data === null) return data;
  const isSecret = (field: unknown) => typeof field === 'string' && field !== '' && !isPlaceholder(field);
  if (!Object.values(data).some(isSecret)) return data;
  return Object.fromEntries(
    Object.entries(data).map(([key, field]) => [key, isSecret(field) ? countMark('secret', tally) : field]),
  );
}

function countMark(kind: string, tally: Tally): string {
  tally.redacted += 1;
  return redactionMark(kind);
}

/** Longer lists are not commands. */
const MAX_ARGUMENTS = 200;
/** Only the start of a longer argument is classified. */
const MAX_ARGUMENT_HEAD = 128;

/** Redacts rows of values below a row of names. */
function redactTable(rows: readonly unknown[], tally: Tally): readonly unknown[] {
  const [header] = rows;
  if (!Array.isArray(header) || rows.length < 2 || header.some((name) => typeof name !== 'string')) return rows;
  return [header, ...redactRows(rows.slice(1), secretColumns(header), tally)];
}

function redactRows(rows: readonly unknown[], columns: Columns | null, tally: Tally): readonly unknown[] {
  const next = rows.map((row) => {
    if (columns === null || !Array.isArray(row)) return row;
    const cells = row.map((cell, index) => {
      const column = columns.get(index);
      const isSecret = column !== undefined && typeof cell === 'string' && isCellSecret(cell, column);
      return isSecret ? countMark(column.named.kind, tally) : cell;
    });
    return cells.some((cell, index) => cell !== row[index]) ? cells : row;
  });
  return next.some((row, index) => row !== rows[index]) ? next : rows;
}

const COLUMN_FIELD = new RegExp(`^${COLUMN_KEY}$`, 'i');

/** The secret columns of `{ columns: […], rows: [[…], …] }`. */
function columnsOf(table: object): Columns | null {
  const header = Object.entries(table).find(([key, field]) => COLUMN_FIELD.test(key) && Array.isArray(field))?.[1] as
    | unknown[]
    | undefined;
  if (header === undefined) return null;
  return secretColumns(header.map((name) => textOf(isObject(name) ? (name.name ?? name.label) : name) ?? ''));
}

/** Redacts a list of command arguments. */
function redactArguments(list: readonly unknown[], tally: Tally, name: string): readonly unknown[] {
  if (list.length < 2 || list.length > MAX_ARGUMENTS || list.some((entry) => typeof entry !== 'string')) return list;
  const texts = list as readonly string[];
  const heads = texts.map((text) => text.slice(0, MAX_ARGUMENT_HEAD));
  const quoted = heads.map((text) =>
    /^[\w.,:=/@%+-]+$/.test(text) ? ` ${text} ` : `"${text.replaceAll(/["\\`'\n\r]/g, '_')}"`,
  );
  const spans = findSecrets(quoted.join(' '));
  let at = 0;
  return texts.map((text, index) => {
    const start = at + 1;
    const head = heads[index] as string;
    const { length } = head;
    at += length + 3;
    const paired = index === 0 ? null : pairedKind(texts, index, name);
    if (paired !== null) return countMark(paired, tally);
    const overlapping = spans.filter((span) => span.start < start + length && span.end > start);
    if (overlapping.length === 0) return text;
    const within = overlapping.map(({ start: from, end, kind }) => ({
      start: Math.max(0, from - start),
      end: end - start,
      kind,
    }));
    const found = mergeSpans([...within, ...findSecrets(head)]);
    // A secret at the end of the head continues after it.
    const whole = found.map((span) => (span.end >= length ? { ...span, end: text.length } : span));
    return withoutSpans(text, whole, tally);
  });
}

/** The kind of a secret by the argument before: a header, a name, a user. */
function pairedKind(list: readonly string[], index: number, name: string): string | null {
  const [before = '', value = ''] = list.slice(index - 1, index + 1);
  if (isCredentialHeader(before)) return namedKind(before, value);
  if (list.length !== 2) return null;
  const isUser = /auth$/i.test(name) && /^[\w.@+-]{1,64}$/.test(before) && secretName(before) === null;
  const isNamed = /^[\w.-]+$/.test(before) && secretName(before)?.strength === 'strong' && !isWord(value);
  return isUser && /\d/.test(value) ? 'password' : isNamed ? namedKind(before, value) : null;
}

function withoutSpans(text: string, spans: readonly SecretSpan[], tally: Tally): string {
  let shown = '';
  let index = 0;
  for (const { start, end, kind } of spans) {
    shown += text.slice(index, start) + countMark(kind, tally);
    index = end;
  }
  return shown + text.slice(index);
}

function redactField(name: string, text: string, tally: Tally, isFree: boolean): string {
  if (!isFree && IDENTIFIER.test(name) && text.length <= MAX_ID_LENGTH) return text;
  const kind = isFree ? namedKind(name, text) : null;
  return kind === null ? redactText(text, tally) : countMark(kind, tally);
}

/** Redacts a text and counts its secrets. @param isOpen see `redactedText` */
export function redactText(text: string, tally: Tally, isOpen?: boolean): string {
  const { text: shown, redacted } = redactedText(text, isOpen);
  tally.redacted += redacted;
  return shown;
}

/** The kind of a secret known only by its name; null for other values. */
function namedKind(name: string, value: string): string | null {
  if (isCredentialHeader(name)) return value.length > 3 && !isPlaceholder(value) ? 'authorization' : null;
  const named = secretName(name);
  return named !== null && isSecretValue(value, named, name, STANDALONE) ? named.kind : null;
}
