import * as z from 'zod';

/**
 * An object with arbitrary names, passed on unchanged: zod's own `record` silently leaves out `__proto__`, so that what
 * is checked would not be what was sent.
 *
 * @param value checks each of its values, and changes none
 */
export function namedValues<Value>(value: z.ZodType<Value>): z.ZodType<Record<string, Value>> {
  return z.custom<Record<string, Value>>().superRefine((given, context) => {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      context.addIssue({ code: 'custom', message: 'Invalid input: expected an object' });
      return;
    }
    for (const [name, entry] of Object.entries(given)) {
      const issue = value.safeParse(entry).error?.issues[0];
      if (issue === undefined) continue;
      context.addIssue({ code: 'custom', message: issue.message, path: [name, ...issue.path] });
      return;
    }
  });
}
