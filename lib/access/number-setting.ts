/**
 * A number above 0 that the environment sets. A value that makes no sense is logged and ignored.
 *
 * @param most the greatest that makes sense
 * @param otherwise what is so without it, for the log
 */
export function numberSetting(
  env: Record<string, string | undefined>,
  name: string,
  { byDefault, most = Number.MAX_VALUE, otherwise }: { byDefault: number; most?: number; otherwise: string },
): number {
  const text = env[name];
  if (text === undefined || text === '') return byDefault;
  const value = Number(text);
  if (value > 0 && value <= most) return value;
  const bound = most === Number.MAX_VALUE ? '' : ` and up to ${most}`;
  console.error(
    `[interlude] ${name}=${text} is not a number above 0${bound}; ${otherwise}. Set it to one, or leave it out.`,
  );
  return byDefault;
}
