"""redis-om without search: hash models are saved, read, expire, and are listed and deleted.

package: redis-om
"""

import os

from scenario import HOME, equal

os.environ["REDIS_OM_URL"] = HOME

from redis_om import HashModel, NotFoundError, get_redis_connection  # noqa: E402


class Person(HashModel):
    name: str
    age: int

    class Meta:
        database = get_redis_connection(url=HOME)


ada = Person(pk="ada", name="Ada", age=36)
ada.save()
equal(Person.get(ada.pk).name, "Ada")
ada.update(age=37)
equal(Person.get(ada.pk).age, 37)
Person.add([Person(pk="bob", name="Bob", age=1), Person(pk="eve", name="Eve", age=2)])
equal(len(list(Person.all_pks())), 3)
ada.expire(100)
assert 90 < Person.db().ttl(ada.key()) <= 100
Person.delete(ada.pk)
try:
    Person.get(ada.pk)
    raise SystemExit("a deleted model is still there")
except NotFoundError:
    pass
