import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { logMarkerSchema } from '@interlude/protocol/envelope';
import type { JsonSchema } from '@interlude/protocol/open-api';
import {
  AnyType,
  createFormatter,
  createParser,
  createProgram,
  DEFAULT_CONFIG,
  SchemaGenerator,
  type SubNodeParser,
  ts,
} from 'ts-json-schema-generator';
import * as z from 'zod';

/**
 * `npm run schemas`: writes down, as JSON Schema, the types of what the API answers, with the words that stand beside
 * them. The server has no compiler, so that this is done when a type changes; a test says when it was forgotten.
 */
const ROOT = new URL('../../', import.meta.url);
const WRITTEN = fileURLToPath(new URL('lib/server/open-api/answer-schemas.json', ROOT));

interface AnswerSchemas {
  answers: Record<string, JsonSchema>;
  pieces: Record<string, JsonSchema>;
  schemas: Record<string, JsonSchema>;
}

/** Types that zod derives from a schema have one already. */
const INFERRED: SubNodeParser = {
  supportsNode: (node) => ts.isTypeReferenceNode(node) && node.getText().startsWith('z.infer<'),
  createType: () => new AnyType(),
};

export function answerSchemas(): AnswerSchemas {
  const config = {
    ...DEFAULT_CONFIG,
    path: fileURLToPath(new URL('lib/server/open-api/answers.ts', ROOT)),
    tsconfig: fileURLToPath(new URL('tsconfig.json', ROOT)),
    // the lint stage has done that, with another compiler
    skipTypeCheck: true,
    // clients ignore what they don't know: an answer may say more
    additionalProperties: true,
    encodeRefs: false,
  };
  const program = createProgram(config);
  const parser = createParser(program, config, (chain) => void chain.addNodeParser(INFERRED));
  const made = new SchemaGenerator(program, parser, createFormatter(config), config).createSchema('*');
  const { $schema: _, ...logMarker } = z.toJSONSchema(logMarkerSchema);
  const types: Record<string, JsonSchema> = {
    ...(made.definitions as Record<string, JsonSchema>),
    LogMarker: logMarker,
  };
  const schemas: Record<string, JsonSchema> = {};
  const take = (name: string) => {
    const fields = inPlace(types[`${name}`]?.properties, types) as Record<string, JsonSchema>;
    reach(fields, types, schemas);
    return fields;
  };
  const [answers, pieces] = [take('Answers'), take('Pieces')];
  const sorted = Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { answers, pieces, schemas: sorted };
}

/** A type that was given another has no name that a document may use: it stands where it is used. */
function inPlace(value: unknown, types: Record<string, JsonSchema>): unknown {
  if (Array.isArray(value)) return value.map((entry) => inPlace(entry, types));
  if (typeof value !== 'object' || value === null) return value;
  const { $ref, ...rest } = value as JsonSchema;
  const fields = Object.fromEntries(Object.entries(rest).map(([name, field]) => [name, inPlace(field, types)]));
  if (typeof $ref !== 'string') return fields;
  const name = $ref.slice('#/definitions/'.length);
  if (/^\w+$/.test(name)) return { $ref: `${COMPONENTS}${name}`, ...fields };
  return { ...(inPlace(types[name], types) as JsonSchema), ...fields };
}

const COMPONENTS = '#/components/schemas/';

/** Adds every type that is named in it, and in those. */
function reach(value: unknown, types: Record<string, JsonSchema>, found: Record<string, JsonSchema>): void {
  if (typeof value !== 'object' || value === null) return;
  if ('$ref' in value && typeof value.$ref === 'string') {
    const name = value.$ref.slice(COMPONENTS.length);
    if (found[name] === undefined) {
      found[name] = inPlace(types[name], types) as JsonSchema;
      reach(found[name], types, found);
    }
  }
  for (const field of Object.values(value)) reach(field, types, found);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  writeFileSync(WRITTEN, JSON.stringify(answerSchemas()));
  spawnSync('npx', ['biome', 'format', '--write', WRITTEN], { stdio: 'inherit' });
}
