/** The names of the control pictures U+2400 to U+2421, for fonts that have no sign for them. */
const NAMES = (
  'NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US ' +
  'SP DEL'
).split(' ');

/** Longer ones are shown as they are: nobody counts them. */
const MOST_SIGNS = 200;

/** A control character or an escape, spelled out: `ESC` in small, and after it what it would have told a terminal. */
export function ControlSign({ text }: { text: string }) {
  if (text.length > MOST_SIGNS) return text;
  return [...text].map((sign, at) => {
    const name = NAMES[sign.charCodeAt(0) - 0x2400];
    if (name === undefined) return sign;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: signs of a text have no other identity
      <span key={at} data-name={name} className="log-control">
        <span>{sign}</span>
      </span>
    );
  });
}
