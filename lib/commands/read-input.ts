import type * as z from 'zod';
import { Pace } from '@/db/next-turn';
import { parseJson } from '@/lib/ingest/parse-json';
import { describeIssue } from '@/lib/ingest/parse-request';
import { readBody } from '@/lib/ingest/read-body';
import { AppError } from '@/lib/protocol/errors';
import { wellFormed } from '@/lib/protocol/well-formed';

/**
 * A request's body as its schema has it, its strings well-formed. An empty body counts as `{}`: some requests say all they
 * have to in the path. Others get their turns between: it may hold as many values as a record.
 *
 * @throws AppError what reading a body throws; `invalid_argument` that names the field and what is allowed
 */
export async function readInput<Shape extends z.ZodRawShape>(
  request: Request,
  schema: z.ZodObject<Shape>,
): Promise<z.infer<z.ZodObject<Shape>>> {
  const body = await readBody(request);
  const pace = new Pace();
  return parseInput(body.byteLength === 0 ? {} : parseJson(body), schema, pace);
}

export async function parseInput<Shape extends z.ZodRawShape>(
  input: unknown,
  schema: z.ZodObject<Shape>,
  pace: Pace,
): Promise<z.infer<z.ZodObject<Shape>>> {
  await pace.rest();
  const parsed = schema.safeParse(input);
  await pace.rest();
  if (parsed.success) {
    const data = wellFormed(parsed.data);
    await pace.rest();
    return data;
  }
  const fields = Object.keys(schema.shape).join(', ');
  throw new AppError('invalid_argument', `${describeIssue(parsed.error)}. The fields are: ${fields}.`, {
    details: { fields: Object.keys(schema.shape) },
  });
}
