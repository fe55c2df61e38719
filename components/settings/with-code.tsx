import { Fragment } from 'react';

/** Words in which what stands between backquotes is code. */
export function WithCode({ text }: { text: string }) {
  return text.split('`').map((part, at) => {
    const key = `${at} ${part}`;
    return at % 2 === 1 ? <code key={key}>{part}</code> : <Fragment key={key}>{part}</Fragment>;
  });
}
