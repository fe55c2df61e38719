import type * as z from 'zod';
import { parseJson } from '@/lib/ingest/parse-json';
import { describeIssue } from '@/lib/ingest/parse-request';
import { readBody } from '@/lib/ingest/read-body';
import { AppError } from '@/lib/protocol/errors';
import { wellFormed } from '@/lib/protocol/well-formed';

/**
 * A request's body as its schema has it, its strings well-formed. An empty body counts as `{}`: some requests say all they have to in the path.
 *
 * @throws AppError what reading a body throws; `invalid_argument` that names the field and what is allowed
 */
export async function readInput<Shape extends z.ZodRawShape>(
  request: Request,
  schema: z.ZodObject<Shape>,
): Promise<z.infer<z.ZodObject<Shape>>> {
  const body = await readBody(request);
  return parseInput(body.byteLength === 0 ? {} : parseJson(body), schema);
}

export function parseInput<Shape extends z.ZodRawShape>(
  input: unknown,
  schema: z.ZodObject<Shape>,
): z.infer<z.ZodObject<Shape>> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return wellFormed(parsed.data);
  const fields = Object.keys(schema.shape).join(', ');
  throw new AppError('invalid_argument', `${describeIssue(parsed.error)}. The fields are: ${fields}.`, {
    details: { fields: Object.keys(schema.shape) },
  });
}
