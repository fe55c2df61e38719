/** A part of a text that nobody may read, from `start` up to but without `end`. */
export interface SecretSpan {
  start: number;
  end: number;
  kind: string;
}

const PLACEHOLDER = /^(?:\$[{(A-Za-z_]|\{\{|<|%[a-z]$|\*+$|\.{2,}|\[redacted)/i;

/** Something that stands for a secret: a variable's name, or the mark of one that is out already. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value);
}
