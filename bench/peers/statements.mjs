// Counts the statements that a contender sends: every statement of the `pg` driver goes through this method.

export function countStatements({ Client }) {
  let sent = 0;
  const { query } = Client.prototype;
  Client.prototype.query = function (...args) {
    sent += 1;
    return query.apply(this, args);
  };
  return () => sent;
}
