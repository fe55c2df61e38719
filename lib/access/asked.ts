/**
 * What a handler is asked: by the ids in the path, and as its route's schemas have the query and the body.
 *
 * @typeParam Id the names of the ids
 */
export type Asked<Id extends string = never, Given = unknown> = Given & {
  ids: Readonly<Record<Id, string>>;
  request: Request;
};
