/**
 * A request as its handler gets it: the ids in the path, and the query and body as parsed by the route's schemas.
 *
 * @typeParam Id the names of the ids
 */
export type Asked<Id extends string = never, Given = unknown> = Given & {
  ids: Readonly<Record<Id, string>>;
  request: Request;
};
