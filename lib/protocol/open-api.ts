import type { Permission } from './scope';

/** The parts of OpenAPI 3.1 that our document uses. @see https://spec.openapis.org/oas/v3.1.1 */

export type JsonSchema = { [name: string]: unknown };
export type Content = Record<string, { schema: JsonSchema }>;

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  'x-permission'?: Permission;
  security: Record<string, string[]>[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, { description?: string; content?: Content; $ref?: string }>;
}

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  description?: string;
  required?: boolean;
  schema: JsonSchema;
}

export interface OpenApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string; license: object };
  servers: object[];
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema>; responses: Record<string, object>; securitySchemes: object };
}
