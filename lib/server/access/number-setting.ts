import { serverLog } from '@interlude/protocol/server-log.mjs';

/**
 * A number above 0 that the environment sets. A value that makes no sense is logged and ignored.
 *
 * @param least the smallest that makes sense; otherwise anything above 0
 * @param most the greatest
 * @param otherwise what is so without it, for the log
 */
export function numberSetting(
  env: Record<string, string | undefined>,
  name: string,
  {
    byDefault,
    least = 0,
    most = Number.MAX_VALUE,
    otherwise,
  }: { byDefault: number; least?: number; most?: number; otherwise: string },
): number {
  const text = env[name];
  if (text === undefined || text === '') return byDefault;
  const value = Number(text);
  if (value > 0 && value >= least && value <= most) return value;
  const bound = most === Number.MAX_VALUE ? '' : ` and up to ${most}`;
  serverLog(
    'warn',
    `${name}=${text} is not a number ${least > 0 ? `from ${least}` : 'above 0'}${bound}; ${otherwise}. Set it to one, or leave it out.`,
  );
  return byDefault;
}
