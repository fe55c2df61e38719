UPDATE `agents` SET `body` = json_set(`body`, '$.brokenOffCount', (
	SELECT count(*) FROM `sessions` WHERE `agent_id` = `agents`.`id` AND `state` = 'exited' AND (
		`sessions`.`body` ->> '$.observations.process.value.signal' IS NOT NULL
		OR ifnull(`sessions`.`body` ->> '$.observations.process.value.code', 0) <> 0)));
