/** A part of a text that nobody may read, from `start` up to but without `end`. */
export interface SecretSpan {
  start: number;
  end: number;
  kind: string;
}

const PLACEHOLDER =
  /^(?:…|\$[{(A-Za-z_]|\$\d{1,2}$|\{\{|\{[A-Za-z_.]{1,32}\}(?![\w$+/])|<|%[a-z](?![\w%])|\*+$|\.{2,}|\[redacted)/i;

/** Something that stands for a secret: a variable's name, or the mark of one that is out already. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value);
}

/** The span of a value in its text. */
export function spanOf(start: number, value: string, kind: string): SecretSpan {
  return { start, end: start + value.length, kind };
}

/** How each secret that was left out begins. */
export const MARK_BEGIN = '[redacted: ';

/** Stands in the place of a secret. */
export function redactionMark(kind: string): string {
  return `${MARK_BEGIN}${kind}]`;
}

/** The kind of what reaches the end of a text and may become a secret if the text goes on. */
export const BEGUN = 'begun';
