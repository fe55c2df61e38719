CREATE TABLE `listed` AS SELECT `agent_id`, `body` ->> '$.stateSince' AS `since`, CASE
    WHEN ifnull(`listed_as`, `state`) IN ('failed', 'lost') AND (`body` ->> '$.arrangement.archivedAt' IS NOT NULL
      OR `body` ->> '$.arrangement.seenState' = `body` ->> '$.stateSince') THEN 'seen'
    ELSE ifnull(`listed_as`, `state`) END AS `listed`
  FROM `sessions`;--> statement-breakpoint
CREATE INDEX `listed_by_agent` ON `listed` (`agent_id`, `listed`, `since`);--> statement-breakpoint
UPDATE `agents` SET `body` = json_set(`body`, '$.listedStates', json_patch(
  '{"needs-input":0,"failed":0,"lost":0,"working":0,"waiting-on-background":0,"starting":0,"idle":0,"unknown":0,"complete":0,"seen":0,"exited":0}',
  (SELECT json_group_object(`listed`, `count`) FROM (
    SELECT `listed`, count(*) AS `count` FROM `listed` WHERE `agent_id` = `agents`.`id` GROUP BY `listed`))));--> statement-breakpoint
UPDATE `agents` SET `body` = json_set(`body`, '$.state', (
  SELECT `key` FROM json_each(`body`, '$.listedStates') WHERE `value` > 0 ORDER BY `id` LIMIT 1));--> statement-breakpoint
UPDATE `agents` SET `body` = json_set(`body`, '$.stateSince', (
  SELECT min(`since`) FROM `listed` WHERE `agent_id` = `agents`.`id` AND `listed` = `agents`.`body` ->> '$.state'));--> statement-breakpoint
DROP TABLE `listed`;
