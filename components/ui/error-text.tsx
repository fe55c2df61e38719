import { useMemo } from 'react';
import { countLines } from './count-lines';
import { VerbatimLines } from './verbatim-lines';
import { verbatimPage } from './verbatim-page';
import { VerbatimText } from './verbatim-text';

/** More is a trace or a dump: its beginning is shown, and the rest on asking. */
const SHORT = { characters: 800, lines: 8, pieces: 100 };

/** Why something failed, as it is: what is short as words, what is long as the output it most likely is. */
export function ErrorText({ text }: { text: string }) {
  const isShort = text.length <= SHORT.characters && countLines(text) <= SHORT.lines;
  const first = useMemo(() => (isShort ? null : verbatimPage(text, 0, SHORT)), [text, isShort]);
  if (first === null) return <VerbatimLines text={text} />;
  return <VerbatimText text={text} first={first} label="error" />;
}
