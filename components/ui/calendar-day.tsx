/** A day of the reader's calendar. Only in the browser: the server does not know the reader's time zone. */
export function CalendarDay({ at }: { at: number }) {
  const time = new Date(at);
  return (
    <time dateTime={time.toISOString()} title={time.toLocaleString()}>
      {time.getDate()} {time.toLocaleDateString('en', { month: 'short' })} {time.getFullYear()}
    </time>
  );
}
